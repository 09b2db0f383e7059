-- SPDX-License-Identifier: GPL-2.0-only
--- The page of --serve: reports as JSON, which the page (scripts/lib/web/page.*) adds up and draws.
local ffi = require 'ffi'
local json = require 'bindings.base.json'
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'

local C = ffi.C
local page = {}

local MAX_ROWS = 500 -- of a table in one report

local LOG2_ROWS = tonumber(C.HIST_LOG2_ROWS)
local log2 = ffi.new('uint64_t[?]', C.HIST_LOG2_ROWS)

---@class Page
---@field tables string[] JSON of the tables of the current report
---@field to? number ns: the end of the report before
---@field clock? integer64 ns: the same on the clock of the recording
local Page = {}
Page.__index = Page

---@return Page
function page.new() return setmetatable({ tables = {} }, Page) end

--- Returns the counts of a histogram, or of a single value, by power of two: -2 for values below 0, -1 for 0. Those of
--- numbers below 0 may have a histogram of their own: { positive = Hist, negative = Hist }.
local function hist_json(hist)
  local parts = {}
  if type(hist) == 'table' then
    if hist.negative then parts[1] = ('[-2,%s]'):format(json.value(hist.negative:stats().count)) end
    hist = hist.positive
  end
  if type(hist) == 'number' then
    local exponent = hist < 0 and -2 or hist < 1 and -1 or select(2, math.frexp(hist)) - 1
    return ('[[%d,1]]'):format(exponent)
  end
  if hist then C.hist_log2(hist, log2) end
  for row = 0, hist and LOG2_ROWS - 1 or -1 do
    if log2[row] > 0 then parts[#parts + 1] = ('[%d,%s]'):format(row - 2, json.value(log2[row])) end
  end
  return '[' .. table.concat(parts, ',') .. ']'
end

--- Returns the unit of a column: its own, or the one that all rows have.
local function unit_of(column, rows)
  local unit = column.unit_of and column.unit_of(rows[1])
  for _, row in ipairs(unit and rows or {}) do
    if column.unit_of(row) ~= unit then return end
  end
  return unit or units.of(column)
end

local function column_json(column, kind, rows)
  local unit = unit_of(column, rows)
  return ('{"name":%s,"title":%s,"kind":"%s"%s%s}'):format(text.json(column.name),
    text.json((column.title or column.name):match '^%s*(.-)%s*$'), kind,
    column.scale and (',"scale":%d'):format(column.scale) or '',
    unit and (',"unit":%s'):format(text.json(unit)) or '')
end

--- Adds the rows of a table to the current report.
---@param spec TableSpec
---@param rows table[]
---@param kinds table<string, string> of the columns by name, as far as they are known
---@param at? number ns since the session's base: the end of what they are about, which may be an earlier report
function Page:table(spec, rows, kinds, at)
  if #rows == 0 then return end
  local columns, list, shown = {}, {}, {}
  for _, column in ipairs(spec.columns) do columns[#columns + 1] = column end
  for _, column in ipairs(spec.histograms or {}) do columns[#columns + 1] = column end
  for i, column in ipairs(columns) do list[i] = column_json(column, kinds[column.name] or 'none', rows) end
  for i = 1, math.min(#rows, MAX_ROWS) do
    local cells = {}
    for n, column in ipairs(columns) do
      local value = rows[i][column.name]
      cells[n] = value ~= nil and kinds[column.name] == 'histogram' and hist_json(value) or json.value(value)
    end
    shown[i] = '[' .. table.concat(cells, ',') .. ']'
  end
  self.tables[#self.tables + 1] = ('{"name":%s,"columns":[%s],"rows":[%s],"more":%d%s}'):format(text.json(spec.name),
    table.concat(list, ','), table.concat(shown, ','), #rows - #shown,
    at and self.to and at <= self.to and (',"at":%.0f'):format(at) or '')
end

--- Returns a time of --time; empty: without a limit.
local function seconds(ns)
  return ns and ('%d.%09d'):format(tonumber(ns / 1000000000ULL), tonumber(ns % 1000000000ULL)) or ''
end

--- Returns the current report, and begins the next one.
---@param time number seconds since the epoch, or of the events' own clock
---@param is_wall boolean since the epoch
---@param to number ns since the session's base: the same time
---@param events number until now
---@param lost number
---@param clock? integer64 ns: the end of the report on the clock of the recording, if it is not the last one; nil
--- without a recording
---@return string
function Page:take(time, is_wall, to, events, lost, clock)
  local tables = table.concat(self.tables, ',')
  local from, begin = self.to, self.clock
  self.tables, self.to, self.clock = {}, to, clock
  return ('{"time":%.6f,"is_wall":%s,"from":%s,"to":%.0f,"part":["%s","%s"],"events":%.0f,"lost":%.0f,"tables":[%s]}')
    :format(time, is_wall, from and ('%.0f'):format(from) or 'null', to, seconds(begin),
      seconds(clock and clock - 1), events, lost, tables)
end

return page
