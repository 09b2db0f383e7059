-- SPDX-License-Identifier: GPL-2.0-only
--- Lists of kernel priorities for --prio, such as "0-99,120".
local cpu_list = require 'bindings.base.cpu_list'

local priorities = {}

local MAX = 139

---@class Priorities
---@field ranges { first: integer, last: integer }[]
---@field has table<integer, boolean>

--- Parses a list.
---@param text string
---@return Priorities? list
---@return string? message
function priorities.parse(text)
  local ranges, has = cpu_list.parse(text, MAX + 1), {}
  if not ranges then
    return nil, ("--prio: invalid priority list '%s' (0-99: real-time, 100-139: nice -20 to 19)"):format(text)
  end
  for _, range in ipairs(ranges) do
    for priority = range.first, range.last do has[priority] = true end
  end
  return { ranges = ranges, has = has }
end

return priorities
