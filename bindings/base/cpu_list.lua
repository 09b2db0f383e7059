-- SPDX-License-Identifier: GPL-2.0-only
--- Lists of CPUs, such as "0-3,7".
local ffi = require 'ffi'

local cpu_list = {}

local CPUS_MAX = ffi.C.CPUS_MAX

--- Returns the ranges of a list, in its order.
---@param text string
---@return { first: integer, last: integer }[]? ranges nil if the list is invalid
---@return integer? at byte at which the invalid part starts
function cpu_list.parse(text)
  local ranges, at = {}, 1
  for part, after in (text .. ','):gmatch '([^,]*),()' do
    local first, last = part:match '^%s*(%d+)%s*%-%s*(%d+)%s*$'
    first = tonumber(first or part:match '^%s*(%d+)%s*$')
    last = tonumber(last) or first
    if not first or first > last or last >= CPUS_MAX then return nil, at end
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

return cpu_list
