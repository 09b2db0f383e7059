-- SPDX-License-Identifier: GPL-2.0-only
--- Page: lines that fill the terminal, and are drawn again when they change or the terminal gets another size.
local terminal = require 'bindings.print.terminal'
local text = require 'bindings.base.text'

local pages = {}

---@class Page
local Page = {}
Page.__index = Page

--- Returns a page. Nothing is shown before draw().
---@param out Output
---@return Page? page nil: stdin or the output is not a terminal
function pages.new(out)
  local found = terminal.new(out)
  return found and setmetatable({ _terminal = found }, Page) or nil
end

--- Cuts a line to the width of the terminal minus 1, because clearing the rest of a full line clears its last column.
---@param line string may have colors, but no other control characters
---@param columns integer of the terminal
---@return string
function pages.cut(line, columns)
  local width, at = 0, 1
  while at <= #line do
    local color = line:match('^\27%[[%d;]*m', at)
    if not color and width == columns - 1 then return line:sub(1, at - 1) .. (line:find '\27' and '\27[m' or '') end
    width = color and width or width + 1
    at = color and at + #color or line:find('[^\128-\191]', at + 1) or #line + 1
  end
  return line
end

--- Cuts a line without colors, and escapes its control characters.
---@param line string
---@param columns integer of the terminal
---@return string
function pages.fit(line, columns) return pages.cut(text.safe(line), columns) end

--- Shows what a function returns, also after the size has changed.
---@param render fun(rows: integer, columns: integer): string[] returns at most `rows` lines that fit the columns
function Page:draw(render)
  self._render = render
  self:_redraw()
end

function Page:_redraw()
  self._rows, self._columns = self._terminal.size()
  self._terminal:show(self._render(self._rows, self._columns))
end

--- Returns the keys that were pressed, and draws the page again if the terminal has another size.
---@return string[] keys as in Terminal:keys()
function Page:poll()
  local rows, columns = self._terminal.size()
  if self._render and (rows ~= self._rows or columns ~= self._columns) then self:_redraw() end
  return self._terminal:keys()
end

--- Restores the terminal.
function Page:leave()
  self._render = nil
  self._terminal:leave()
end

return pages
