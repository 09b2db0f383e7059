-- SPDX-License-Identifier: GPL-2.0-only
--- Tables in an order: pairs() has none that is the same in each run.
local sorted = {}

--- Returns the keys of a table, sorted. They must be all numbers or all strings.
---@param t table
---@return any[]
function sorted.keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

return sorted
