-- SPDX-License-Identifier: GPL-2.0-only
--- What a sched:sched_switch means: the task `prev_pid` leaves the CPU, in the state that `prev_state` says, and
--- `next_pid` runs from now on.
local bit = require 'bit'
local ffi = require 'ffi'
local expr = require 'bindings.expr.compile'

local switches = {}

--- The states of tasks: running, asleep (S, D), stopped, traced, idle, parked, waiting for a CPU. 0 is unknown.
switches.STATES = { 'R', 'S', 'D', 'T', 't', 'I', 'P', 'RD' }
switches.ON_CPU, switches.SLEEP, switches.BLOCKED, switches.QUEUED = 1, 2, 3, 8

-- By prev_state. Older kernels set 2 and 128 for a sleep in D that does not count as load. Dead tasks have no state.
local BY_PREV_STATE = { [0] = 8, [1] = 2, [2] = 3, [4] = 4, [8] = 5, [128] = 6, [130] = 3, [64] = 7 }
local BITS = 256 -- the bit above marks preempted tasks

switches.BITS = BITS

--- The largest prev_state of programs, which compute it as Linux does since 4.14.
switches.MAX_PREV_STATE = 2 * BITS - 1

--- The fields of the events in which a state begins or ends.
switches.LEAVES, switches.ENTERS = { pid = 'prev_pid', comm = 'prev_comm' }, { pid = 'next_pid', comm = 'next_comm' }

--- Returns the state of a task that leaves its CPU; nil if it has ended.
---@param bits integer prev_state
---@return integer?
function switches.state_of(bits) return BY_PREV_STATE[bits % BITS] end

--- Returns whether a task that leaves its CPU goes on waiting for one: it yielded, its time slice was over, or it was
--- preempted.
---@param bits integer prev_state
---@param preempted integer see switches.preempted()
---@return boolean
function switches.is_runnable(bits, preempted) return bits == 0 or bits == preempted end

--- Returns the kernel filter for the switches of such tasks.
---@param preempted integer
---@return string
function switches.runnable(preempted) return ('prev_state == 0 || prev_state == %d'):format(preempted) end

--- Returns the bits of prev_state of which one is set if the task does not wait for a CPU.
---@param preempted integer
---@return integer
function switches.asleep_mask(preempted) return bit.band(bit.bnot(preempted), 0xffff) end

--- Returns whether a switch is missing, or was not selected: a CPU leaves another task than it had entered.
---@param entered? integer nil: not known
---@param leaves integer
---@return boolean
function switches.is_missing(entered, leaves) return entered ~= nil and entered ~= leaves end

--- Returns the kernel filter for the switches of tasks that go to sleep.
---@param interruptible? boolean in S
---@param uninterruptible? boolean in D
---@return string? filter nil: both are false
function switches.asleep(interruptible, uninterruptible)
  local terms = {}
  if interruptible then terms[1] = 'prev_state == 1' end
  if uninterruptible then terms[#terms + 1] = 'prev_state == 2 || prev_state == 130' end
  return #terms > 0 and table.concat(terms, ' || ') or nil
end

local function print_format(event)
  return event.print_fmt or event.tracepoint and ffi.string(ffi.C.tracepoint_print_fmt(event.tracepoint)) or ''
end

--- Returns the bit of prev_state that marks a preempted task, which is printed as "+"; 0 if the print format has none.
--- It differs between kernels.
---@param event Event sched:sched_switch
---@return integer
function switches.preempted(event)
  local mask = print_format(event):match '.*prev_state & (.-) %? "%+"'
  local compiled = mask and expr.compile(mask, {})
  local value = compiled and tonumber(expr.load(compiled)(nil, nil, nil, 0))
  return value or 0
end

return switches
