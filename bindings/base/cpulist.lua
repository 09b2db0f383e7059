-- SPDX-License-Identifier: GPL-2.0-only
--- CPU lists in the kernel's form, such as "0-3,7".
local sys = require 'bindings.base.sys'

local cpulist = {}

--- Returns the numbers of a list, in its order.
---@param text string
---@return integer[]
function cpulist.numbers(text)
  local all = {}
  for first, last in text:gmatch '(%d+)%-?(%d*)' do
    for number = tonumber(first), tonumber(last) or tonumber(first) do all[#all + 1] = number end
  end
  return all
end

--- Returns the numbers of a list as a set.
---@param text string
---@return table<integer, boolean>
function cpulist.set(text)
  local set = {}
  for _, number in ipairs(cpulist.numbers(text)) do set[number] = true end
  return set
end

--- Returns the list of a set; the empty string if it is empty.
---@param set table<integer, boolean>
---@return string
function cpulist.text(set)
  local numbers, parts = {}, {}
  for number in pairs(set) do numbers[#numbers + 1] = number end
  table.sort(numbers)
  local at = 1
  while at <= #numbers do
    local first = at
    while numbers[at + 1] == numbers[at] + 1 do at = at + 1 end
    parts[#parts + 1] = at > first and ('%d-%d'):format(numbers[first], numbers[at]) or tostring(numbers[at])
    at = at + 1
  end
  return table.concat(parts, ',')
end

--- Splits a list into the CPUs that are online and the others.
---@param text string
---@return string here
---@return string missing either may be empty
function cpulist.split(text)
  local online = sys.read '/sys/devices/system/cpu/online'
  local here, missing = {}, {}
  local set = online and cpulist.set(online)
  for _, cpu in ipairs(cpulist.numbers(text)) do
    if not set or set[cpu] then here[cpu] = true else missing[cpu] = true end
  end
  return cpulist.text(here), cpulist.text(missing)
end

return cpulist
