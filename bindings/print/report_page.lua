-- SPDX-License-Identifier: GPL-2.0-only
--- Report page: on a terminal, a report that has a picture (Output:table) takes the place of the one before, as in top.
--- A run that prints something between its reports gets all of them as text.
local pages = require 'bindings.print.page'

local report_pages = {}

---@class ReportPage
---@field draws? boolean it also shows reports without a picture
local ReportPage = {}
ReportPage.__index = ReportPage

--- Returns the page of a run's reports.
---@param out Output
---@return ReportPage? page nil: reports are text
function report_pages.new(out)
  local page = not out.has_prompt and pages.new(out)
  if not page then return nil end
  local self = setmetatable({ _out = out, _page = page }, ReportPage)
  out.report_page = self
  return self
end

--- Returns whether reports can still be drawn.
---@return boolean
function ReportPage:can_show() return not self._is_over and not self._out:has_printed() end

--- Begins a report.
function ReportPage:begin()
  if self._out:has_printed() then self:stop() end
  self._parts = not self._is_over and {} or nil
end

--- Returns whether a report has begun, so that add() may be called.
---@return boolean
function ReportPage:is_open() return self._parts ~= nil end

--- Adds a picture to the report, after the text that was printed before it.
---@param draw fun(columns: integer): string[] returns lines for so many columns, in which control characters of events
--- are escaped; longer ones are cut
function ReportPage:add(draw)
  table.insert(self._parts, self._out:take_text())
  table.insert(self._parts, draw)
end

--- Ends a report and shows it, if it had a picture, or if all reports are shown.
function ReportPage:finish()
  local parts = self._parts
  self._parts = nil
  if not parts or #parts == 0 and not self.draws then return end
  table.insert(parts, self._out:take_text())
  self:_draw(self._page.draw, function(rows, columns)
    local lines, more = {}, 0
    local function add(line)
      if #lines < rows - 1 then lines[#lines + 1] = line else more = more + 1 end
    end
    for _, part in ipairs(parts) do
      if type(part) == 'string' then
        for line in part:gmatch '([^\n]*)\n' do add(pages.fit(line, columns)) end
      else
        for _, line in ipairs(part(columns - 1)) do add(pages.cut(line, columns)) end
      end
    end
    if more > 0 then lines[rows] = pages.fit(('... %d more lines'):format(more), columns) end
    return lines
  end)
end

--- Calls a method of the page. What it writes is not text of the run.
function ReportPage:_draw(method, ...)
  self.is_drawing = true
  local result = method(self._page, ...)
  self._out:flush()
  self.is_drawing = false
  return result
end

--- Restores the terminal. From now on, reports are text.
function ReportPage:stop()
  if self._is_over then return end
  self._is_over, self._parts = true, nil
  local waiting = self._out:take_text()
  self:_draw(self._page.leave)
  self._out.report_page = nil
  self._out:raw(waiting)
end

--- Called by the driver between batches. True ends the run.
---@return boolean?
function ReportPage:poll()
  if self._is_over or self._out:has_pending() then return end
  for _, key in ipairs(self:_draw(self._page.poll)) do
    if key == 'q' then return true end
  end
end

return report_pages
