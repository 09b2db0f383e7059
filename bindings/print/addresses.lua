-- SPDX-License-Identifier: GPL-2.0-only
--- Addresses: fields that are pointers, or that the kernel prints as such (%p), and their text. As numbers they would
--- be rounded by most readers of JSON, and nobody recognizes them.
local ffi = require 'ffi'
local has = require('bindings.view.views').has
local units = require 'bindings.base.units'

local C = ffi.C
local addresses = {}

--- Adds the fields that a print format prints as pointers.
local function add_printed(format, found)
  local text, arguments = format:match '^"(.-)",(.*)$'
  if not text then return end
  local list, depth, start = {}, 0, 1
  for at, sign in (arguments .. ','):gmatch '()([(),])' do
    depth = depth + (sign == '(' and 1 or sign == ')' and -1 or 0)
    if sign == ',' and depth == 0 then
      list[#list + 1] = arguments:sub(start, at - 1)
      start = at + 1
    end
  end
  local n = 0
  for kind in text:gsub('%%%%', ''):gmatch '%%[-+ 0#]*[%d*]*%.?[%d*]*[hlLqzZtj]*(%a)' do
    n = n + 1
    local name = kind == 'p' and list[n] and list[n]:match '^%s*%(?[%w_ *()]-REC%->([%w_]+)%)?%s*$'
    if name then found[name] = true end
  end
end

-- Fields of perf's events and of probes, which no format calls pointers.
local ALWAYS = { _ip = true, _addr = true, _phys_addr = true, __probe_ip = true, __probe_func = true,
  __probe_ret_ip = true }

--- Returns the names of the fields of an event that are addresses.
---@param event Event
---@return table<string, boolean>
function addresses.of(event)
  local printed, found = {}, {}
  local format = event.print_fmt or event.tracepoint and ffi.string(C.tracepoint_print_fmt(event.tracepoint))
  if format then add_printed(format, printed) end
  for name, field in pairs(event.fields) do
    local is_number = field.size == 8 and not has(field, 'ARRAY') and not has(field, 'DYNAMIC')
    if is_number and (printed[name] or ALWAYS[name] or has(field, 'POINTER')) then found[name] = true end
  end
  return found
end

--- Returns whether the value of an expression is an address: whether it is the name of such a field.
---@param event Event
---@param source? string
---@return boolean
function addresses.is_source(event, source)
  local name = source and source:match '^[%s(]*([%a_][%w_]*)[%s)]*$'
  return name ~= nil and event.fields[name] ~= nil and addresses.of(event)[name] == true
end

addresses.text = units.address

return addresses
