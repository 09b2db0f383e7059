-- SPDX-License-Identifier: GPL-2.0-only
--- Lists of kernel priorities for --prio, such as "0-99,120".
local priorities = {}

priorities.MAX = 139

---@class Priorities
---@field ranges { [1]: integer, [2]: integer }[] first and last
---@field has table<integer, boolean>

--- Parses a list.
---@param text string
---@return Priorities? list
---@return string? message
function priorities.parse(text)
  local list = { ranges = {}, has = {} }
  for part in (text .. ','):gmatch '([^,]*),' do
    local first, last = part:match '^%s*(%d+)%-(%d+)%s*$'
    first = tonumber(first or part:match '^%s*(%d+)%s*$')
    last = tonumber(last) or first
    if not first or first > last or last > priorities.MAX then
      return nil, ("--prio: invalid priority list '%s' (0-99: real-time, 100-139: nice -20 to 19)"):format(text)
    end
    table.insert(list.ranges, { first, last })
    for priority = first, last do list.has[priority] = true end
  end
  return list
end

return priorities
