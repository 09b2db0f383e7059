-- SPDX-License-Identifier: GPL-2.0-only
--- Live tables, as in top. On a terminal the user can sort the rows by any column with the arrow keys; other outputs
--- get a table per report.
---
---   local view = screen.new(out, spec, { 'calls', 'bytes' })
---   return { view, interval = function() view:report(rows, 'title') end, ... }
local facade = require 'bindings.base.facade'
local pages = require 'bindings.print.page'
local tables = require 'lib.table'

local screen = {}

local TITLE_AND_HEADING = 3 -- lines above the rows
local MOVES = { ['<'] = -1, left = -1, ['>'] = 1, right = 1 }

--- A live table.
---@class Screen
local Screen = {}
Screen.__index = Screen
local public -- creates the facade of a screen

--- Creates a screen. It must be a list entry of the handlers that the script returns.
---@param out Output
---@param spec TableSpec created with stamp = false
---@param order string[] columns of numbers to sort by, the most important first
---@param is_plain? boolean print tables on a terminal, too
---@return Screen
function screen.new(out, spec, order, is_plain)
  local self = setmetatable({ _out = out, _spec = spec, _order = order, _rows = {}, _title = '' }, Screen)
  local wanted = out.sort and tables.column(spec, out.sort)
  self._column = wanted and wanted.name
  self._page = not is_plain and pages.new(out) or nil
  return public(self)
end

--- Orders numbers before strings.
local function less(a, b)
  local text_a, text_b = type(a) == 'string', type(b) == 'string'
  if text_a ~= text_b then return text_b end
  if not text_a then a, b = tonumber(a), tonumber(b) end
  return a < b
end

--- Sorts by the chosen column, then by `order`, largest first, then by the key.
function Screen:_sort(rows)
  local order = { unpack(self._order) }
  if self._column then table.insert(order, 1, self._column) end
  table.sort(rows, function(a, b)
    for _, name in ipairs(order) do
      local x, y = a[name], b[name]
      if x ~= y and x ~= nil and y ~= nil then
        local is_less = less(y, x)
        if type(x) == 'string' then is_less = not is_less end
        if self._reverse then return not is_less end
        return is_less
      end
    end
    if a.key == nil or b.key == nil then return b.key == nil and a.key ~= nil end
    return less(a.key, b.key)
  end)
end

function Screen:_draw()
  self._page:draw(function(rows, columns)
    self:_sort(self._rows)
    local shown = {}
    for i = 1, math.min(#self._rows, rows - TITLE_AND_HEADING) do shown[i] = self._rows[i] end
    local sorted = self._column or self._order[1]
    local lines = { ('\27[7m%s\27[m'):format(pages.fit(('%s - sorted by %s%s'):format(self._title, sorted,
      self._reverse and ', smallest first' or ''), columns)) }
    if #shown > 0 then
      local text = tables.render(self._spec, shown, false, columns - 1)
      for line in text:gmatch '[^\n]+' do lines[#lines + 1] = pages.fit(line, columns) end
    end
    return lines
  end)
end

--- Shows the rows on the screen, or prints them. Rows that are equal in all columns are sorted by their field `key`.
---@param rows table[]
---@param title string
---@param is_last? boolean true at the end of the run: restores the terminal
function Screen:report(rows, title, is_last)
  if self._page then self._out:offer(self._spec, rows) end
  if self._page and is_last then
    self._page:leave()
  elseif self._page then
    self._rows, self._title = rows, title
    self:_draw()
  else
    self:_sort(rows)
    if #rows > 0 then self._out:stamp(nil, title) end
    self._out:table(self._spec, rows)
  end
end

--- Called by the driver when --watch has loaded another version of the script.
---@package
function Screen:close()
  if self._page then self._page:leave() end
end

--- Called by the driver between batches. True ends the run.
---@return boolean?
---@package
function Screen:poll()
  if not self._page then return end
  local changed = false
  for _, key in ipairs(self._page:poll()) do
    if key == 'q' then return true end
    if key == 'r' then
      self._reverse, changed = not self._reverse, true
    elseif MOVES[key] then
      self:_move(MOVES[key])
      changed = true
    end
  end
  if changed or not self._is_shown then
    self._is_shown = true
    self:_draw()
  end
end

--- Sorts by the next column to the left or to the right.
function Screen:_move(step)
  local list, at = self._spec.columns, 1
  for i, column in ipairs(list) do
    if column.name == (self._column or self._order[1]) then at = i end
  end
  self._column = list[(at - 1 + step) % #list + 1].name
end

public = facade.class('screen', Screen, { 'report' })

return screen
