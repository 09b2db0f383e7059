-- SPDX-License-Identifier: GPL-2.0-only
--- What the prev_state of sched:sched_switch means. The bits differ from kernel to kernel, so they are
--- taken from the format's own print format.
local ffi = require 'ffi'
local expr = require 'bindings.expr.compile'

local prev_state = {}

local function print_format(event)
  return event.print_fmt or event.tracepoint and ffi.string(ffi.C.tracepoint_print_fmt(event.tracepoint)) or ''
end

--- The bit of a task that was preempted, which prints as "+"; 0 where the kernel does not tell.
---@param event Event sched:sched_switch
---@return integer
function prev_state.preempted(event)
  local mask = print_format(event):match '.*prev_state & (.-) %? "%+"'
  local compiled = mask and expr.compile(mask, {})
  local value = compiled and tonumber(expr.load(compiled)(nil, nil, nil, 0))
  return value or 0
end

return prev_state
