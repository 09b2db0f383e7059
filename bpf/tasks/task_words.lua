-- SPDX-License-Identifier: GPL-2.0-only
--- What programs that follow tasks share. Each thread has a word: the time when its state began, and the number of the
--- state as a tag in the lower bits. 0: the thread was not seen yet. A run has limits: when it began, and when it ends.
---
--- In a program, r7 is the thread, r8 the time of the event, and r9 the address of the thread's word.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local program = require 'bpf.gen.program'
local sched_switch = require 'bindings.expr.sched_switch'
local starts = require 'bpf.gen.starts'

local FRAME = asm.FRAME
local BEGUN, ENDED = 0, 8 -- offsets in `limits`
local words_type = ffi.typeof 'uint64_t *'
local task_words = {
  OUT = 2 ^ starts.TAG_BITS - 1, -- tag: in none of the states
}
local OUT = task_words.OUT

---@class TaskWords
---@field nr_threads integer all thread ids are less
---@field limits Descriptor
---@field first? Descriptor states of threads at the start, by thread id
local TaskWords = {}

---@class TaskWordsProgram
---@field a Asm
---@field source Source
---@field of TaskWords
---@field time integer place on the stack
local Program = {}

--- Returns a class whose objects have the functions of TaskWords, and one for their programs.
---@return table, table
function task_words.classes()
  local class, one = setmetatable({}, { __index = TaskWords }), setmetatable({}, { __index = Program })
  class.__index, one.__index = class, one
  return class, one
end

--- Makes the maps that all have. Refuses without BPF.
---@param self TaskWords
---@param plan { nr_threads: integer, threads?: Targets }
---@param prefix string of the names of the maps
---@param counters string[] what programs count
function task_words.init(self, plan, prefix, counters)
  self.nr_threads, self._counters = plan.nr_threads, {}
  self.limits = plan.threads and plan.threads.limits or program.mapped(16, prefix .. '_limits')
  ffi.cast(words_type, self.limits.bytes)[ENDED / 8] = -1ULL
  self.counters = program.mapped(8 * #counters, prefix .. '_counts')
  for i, name in ipairs(counters) do self._counters[name] = i - 1 end
  self.tags = program.mapped(sched_switch.MAX_PREV_STATE + 1, prefix .. '_tags')
  for bits = 0, sched_switch.MAX_PREV_STATE do self.tags.bytes[bits] = sched_switch.state_of(bits) or OUT end
end

--- Generates code that counts. Uses r1 and r2.
---@param name string
function Program:count(name)
  local a = self.a
  a:map_value(2, self.of.counters, 8 * self.of._counters[name])
  a:alu('mov', 1, 1)
  a:atomic_add(8, 2, 0, 1)
end

--- Generates r8 = the time. Jumps to `done` if the run has not begun, or has ended. Other tasks than the targets do not
--- pay for the clock.
function Program:now()
  local a, known = self.a, self.a:new_label()
  a:load(8, 8, FRAME, self.time)
  a:jump('!=', 8, 0, known)
  a:call 'ktime_get_ns'
  a:alu_r('mov', 8, 0)
  a:store(8, FRAME, self.time, 8)
  a:label(known)
  a:map_value(1, self.of.limits, 0)
  a:load(8, 2, 1, ENDED)
  a:jump_r('>=', 8, 2, 'done')
  a:load(8, 2, 1, BEGUN)
  a:jump('==', 2, 0, 'done')
end

--- Generates r7 = the thread in a field, or the current one. Jumps to `done` if it does not count. Then now().
---@param field? Field
function Program:thread(field)
  local a, threads = self.a, self.of.plan.threads
  if field then
    self.source:load(a, 4, 7, field, 0)
  else
    assert(self.source:variable(a, '_tid'))
    a:alu_r('mov', 7, 0)
  end
  a:jump('==', 7, 0, 'done')
  a:jump('>=', 7, self.of.nr_threads, 'done')
  if threads then threads:check_id(a, 7, 'done') end
  self:now()
end

--- Generates r9 = the address of what a map has for the thread in r7. Jumps if there is none.
---@param map Descriptor
---@param size integer? bytes, if each thread has a place in it; nil: it is a hash
---@param none string label
function Program:find_in(map, size, none)
  local a = self.a
  if size then
    a:alu_r('mov', 1, 7)
    a:alu('mul', 1, size)
    a:map_value(9, map, 0)
    return a:alu_r('add', 9, 1)
  end
  local key = a:take(8)
  a:store(8, FRAME, key, 7)
  a:map(1, map)
  a:address(2, FRAME, key)
  a:call 'map_lookup_elem'
  a:give(key, 8)
  a:jump('==', 0, 0, none)
  a:alu_r('mov', 9, 0)
end

--- Generates r2 = the tag of the state in which a thread leaves the CPU.
---@param state Field prev_state
function Program:load_tag(state)
  local a = self.a
  self.source:load(a, 8, 1, state, 0)
  a:alu('and', 1, sched_switch.MAX_PREV_STATE)
  a:map_value(2, self.of.tags, 0)
  a:alu_r('add', 2, 1)
  a:load(1, 2, 2, 0)
end

--- Generates r2 = the tag of the thread's state at the start. Jumps if it is not known.
---@param unknown string label
function Program:load_first(unknown)
  local a = self.a
  a:map_value(2, self.of.first, 0)
  a:alu_r('add', 2, 7)
  a:load(1, 2, 2, 0)
  a:jump('==', 2, 0, unknown)
end

--- Generates r1 = the word of a state, whose tag is in r2, that has lasted since the start of the run.
function Program:word_from_start()
  local a = self.a
  a:map_value(1, self.of.limits, 0)
  a:load(8, 1, 1, BEGUN)
  a:alu('lsh', 1, starts.TAG_BITS)
  a:alu_r('or', 1, 2)
end

--- Generates code that lets the thread be in a state from now on. r1 is its word then.
---@param tag integer|'r2'
function Program:set_word(tag)
  local a = self.a
  if tag ~= 'r2' then a:alu('mov', 2, tag) end
  a:alu_r('mov', 1, 8)
  a:alu('lsh', 1, starts.TAG_BITS)
  a:alu_r('or', 1, 2)
  a:store(8, 9, 0, 1)
end

--- Returns how often something was counted.
---@param name string
---@return integer
function TaskWords:counted(name) return tonumber(ffi.cast(words_type, self.counters.bytes)[self._counters[name]]) end

--- Sets the state of a thread at the start.
---@param tid integer
---@param state integer
function TaskWords:set_first(tid, state)
  if tid > 0 and tid < self.nr_threads then self.first.bytes[tid] = state end
end

--- Limits the time in which states are counted.
---@param from? number ns of CLOCK_MONOTONIC
---@param to? number
function TaskWords:limit(from, to)
  local limits = ffi.cast(words_type, self.limits.bytes)
  if from then limits[BEGUN / 8] = from end
  if to then limits[ENDED / 8] = to end
end

--- Returns when the run began, ns of CLOCK_MONOTONIC.
---@return integer64
function TaskWords:begun() return ffi.cast(words_type, self.limits.bytes)[BEGUN / 8] end

return task_words
