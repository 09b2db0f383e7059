-- SPDX-License-Identifier: GPL-2.0-only
--- The states of target threads in the maps of bpf/task_state.bpf.c: tells the program those of the start, and reads
--- those of the end. The program knows what a thread was in at the start by its first event, but not in which state it
--- waited for a wakeup. That is in an array that only this process writes to.
local ffi = require 'ffi'
local bpf_map = require 'bindings.bpf.map'

local thread_states = {}

local MARKED = 1 -- no event yet; enum mark of bpf/targets.h
local STATES = 16 -- in the last bits of a word

local words_type = ffi.typeof 'const uint64_t *'

---@class ThreadStates
---@field first fun(tid: integer, state: integer) sets the state of a thread at the start
---@field each fun(call: fun(tid: integer, state: integer, since?: number)) calls a function for each thread whose
--- current state is known; since: ns of CLOCK_MONOTONIC; nil: from the start
---@param marks BpfMap
---@param first_states BpfMap
---@param tasks BpfMap
---@return ThreadStates
function thread_states.new(marks, first_states, tasks)
  local max = bpf_map.descriptor(tasks).entries
  local marked, first = bpf_map.memory(marks), bpf_map.memory(first_states)
  local words = ffi.cast(words_type, bpf_map.memory(tasks))
  local self = {}

  function self.first(tid, state)
    if tid > 0 and tid < max then first[tid] = state end
  end

  function self.each(call)
    for tid = 1, max - 1 do
      if marked[tid] == MARKED then
        if first[tid] ~= 0 then call(tid, first[tid]) end
      elseif marked[tid] ~= 0 and words[tid] ~= 0 then
        call(tid, tonumber(words[tid] % STATES), tonumber(words[tid] / STATES))
      end
    end
  end
  return self
end

return thread_states
