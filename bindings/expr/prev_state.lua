-- SPDX-License-Identifier: GPL-2.0-only
--- prev_state of sched:sched_switch. Its bits differ between kernels, so they are read from the event's print format.
local ffi = require 'ffi'
local expr = require 'bindings.expr.compile'

local prev_state = {}

local function print_format(event)
  return event.print_fmt or event.tracepoint and ffi.string(ffi.C.tracepoint_print_fmt(event.tracepoint)) or ''
end

--- Returns the bit that marks a preempted task, which is printed as "+"; 0 if the print format has none.
---@param event Event sched:sched_switch
---@return integer
function prev_state.preempted(event)
  local mask = print_format(event):match '.*prev_state & (.-) %? "%+"'
  local compiled = mask and expr.compile(mask, {})
  local value = compiled and tonumber(expr.load(compiled)(nil, nil, nil, 0))
  return value or 0
end

return prev_state
