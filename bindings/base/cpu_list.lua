-- SPDX-License-Identifier: GPL-2.0-only
--- Lists of CPUs, such as "0-3,7".
local ffi = require 'ffi'
local sys = require 'bindings.base.sys'

local cpu_list = {}

local CPUS_MAX = ffi.C.CPUS_MAX

--- Returns the ranges of a list, in its order.
---@param text string
---@param limit? integer all numbers are smaller; default: that of CPUs
---@return { first: integer, last: integer }[]? ranges nil if the list is invalid
---@return integer? at byte at which the invalid part starts
function cpu_list.parse(text, limit)
  local ranges, at = {}, 1
  for part, after in (text .. ','):gmatch '([^,]*),()' do
    local first, last = part:match '^%s*(%d+)%s*%-%s*(%d+)%s*$'
    first = tonumber(first or part:match '^%s*(%d+)%s*$')
    last = tonumber(last) or first
    if not first or first > last or last >= (limit or CPUS_MAX) then return nil, at end
    ranges[#ranges + 1] = { first = first, last = last }
    at = after
  end
  return ranges
end

--- Returns the CPUs of a valid list, in its order.
---@param text string
---@return integer[]
function cpu_list.numbers(text)
  local all = {}
  for _, range in ipairs(assert(cpu_list.parse(text))) do
    for cpu = range.first, range.last do all[#all + 1] = cpu end
  end
  return all
end

--- Returns the list of a set of CPUs; the empty string if it is empty.
---@param set table<integer, boolean>
---@return string
function cpu_list.text(set)
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

--- Splits a valid list into the CPUs that are online and the others.
---@param text string
---@return string here
---@return string missing either may be empty
function cpu_list.split(text)
  local list = sys.read '/sys/devices/system/cpu/online'
  local online, here, missing = {}, {}, {}
  for _, cpu in ipairs(list and cpu_list.numbers(list) or {}) do online[cpu] = true end
  for _, cpu in ipairs(cpu_list.numbers(text)) do
    if not list or online[cpu] then here[cpu] = true else missing[cpu] = true end
  end
  return cpu_list.text(here), cpu_list.text(missing)
end

return cpu_list
