-- SPDX-License-Identifier: GPL-2.0-only
--- Programs that add up how long tasks are in each state, by the rules of scripts/profilers/task-state.lua. A state is
--- one word for each thread: the time when it began, and its number as a tag. The scheduler's locks order the events of
--- a task, and it calls the programs with interrupts disabled, so nothing is atomic.
---
--- With an OutlierPlan, the event that begins a state is kept, and states that took too long are sent with both events.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local kernel_sums = require 'bpf.gen.sums'
local libbpf = require 'bindings.bpf.libbpf'
local outliers = require 'bpf.gen.sent_pairs'
local program = require 'bpf.gen.program'
local sched_switch = require 'bindings.expr.sched_switch'
local starts = require 'bpf.gen.starts'
local task_words = require 'bpf.tasks.task_words'

local FRAME = asm.FRAME
local ON_CPU, SLEEP, QUEUED, STATES = sched_switch.ON_CPU, sched_switch.SLEEP, sched_switch.QUEUED, #sched_switch.STATES
local OUT = task_words.OUT
local MOST_ROWS = 65536
local MOST_KEPT = 2 ^ 17 -- events; with more threads, those that are seen have a place
local words_type = ffi.typeof 'uint64_t *'

local task_states = {}

---@class TaskStatesPlan
---@field nr_cpus integer
---@field nr_threads integer all thread ids are less
---@field sides integer see Switch
---@field threshold number ns: longer times are counted; negative: none
---@field by_thread? boolean rows by thread and state
---@field only? boolean only some sleeps are counted: no switch to a task is seen
---@field all_but_sleep? boolean
---@field threads? Targets only these count
---@field outliers? OutlierPlan

--- What an event is.
---@class TaskStatesRole
---@field leaves? Field, a thread leaves the CPU, with `state`
---@field state? Field prev_state
---@field enters? Field
---@field wakes? Field
---@field born? Field
---@field exits? boolean
---@field name? table<string, Field> by the field of the thread
---@field sample? OutlierEvent with TaskStatesPlan.outliers

---@class TaskStates: TaskWords
---@field plan TaskStatesPlan

---@class TaskStatesProgram: TaskWordsProgram
---@field places ProbePlaces
---@field of TaskStates
---@field role TaskStatesRole
---@field ring? integer see outliers.begin()
local TaskStates, Program = task_words.classes()

--- Makes the maps. Refuses what BPF cannot do.
---@param plan TaskStatesPlan
---@return TaskStates
function task_states.new(plan)
  local self = setmetatable({ plan = plan }, TaskStates)
  task_words.init(self, plan, 'state', { 'switches', 'wakeups', 'unkept', 'outliers' })
  self.words = program.mapped(8 * self.nr_threads, 'states')
  if plan.threads then self.first = program.mapped(self.nr_threads, 'state_first') end
  if plan.by_thread then
    self.rows = kernel_sums.rows(2, { nr_cpus = plan.nr_cpus, sides = plan.sides, most = MOST_ROWS, kinds = STATES + 1,
      threshold = plan.threshold, buckets = true, named = true, has_tables = true })
  else
    self.cells = kernel_sums.cells(STATES + 1, plan.nr_cpus, { threshold = plan.threshold, buckets = true })
  end
  if plan.outliers then
    local size = outliers.more(plan.outliers)
    self.has_all = self.nr_threads <= MOST_KEPT
    self.no_event = program.mapped(size, 'state_none')
    self.kept = self.has_all and program.mapped(self.nr_threads * size, 'state_kept')
      or program.hash(8, size, MOST_KEPT, 'state_kept')
  end
  return self
end

-- Parts of a program --------------------------------------------------------------------------------

--- Generates code that finds the word of the thread in a field, or of the current one: r7 to r9, and r1 is the word.
--- Jumps to `done` if the thread does not count.
function Program:find(field)
  local a, of = self.a, self.of
  self:thread(field)
  a:map_value(9, of.words, 0)
  a:alu_r('mov', 1, 7)
  a:alu('lsh', 1, 3)
  a:alu_r('add', 9, 1)
  a:load(8, 1, 9, 0)
end

--- Generates r1 = the word of a target of which this is the first event: it has been in a state since the start.
---@param state integer|'first' 'first': what /proc said
function Program:from_start(state)
  local a, of = self.a, self.of
  if not of.plan.threads then return end
  local known = a:new_label()
  a:jump('!=', 1, 0, known)
  if state == 'first' then
    self:load_first(known)
  else
    a:alu('mov', 2, state)
  end
  self:word_from_start()
  a:label(known)
end

--- Generates code that adds the time of the state whose word is in r1 and whose tag is in r2, and sends it if it took
--- too long. Keeps r7 to r9.
---@param name? Field of the thread
---@param is_sent boolean
function Program:add(name, is_sent)
  local a, of = self.a, self.of
  local plan, skip, positive = of.plan, a:new_label(), a:new_label()
  if plan.all_but_sleep then a:jump('==', 2, SLEEP, skip) end
  a:alu_r('mov', 3, 1)
  a:alu('rsh', 3, starts.TAG_BITS)
  a:alu_r('mov', 0, 8)
  a:alu_r('sub', 0, 3)
  a:alu_r('mov', 3, 0)
  a:jump('s>=', 3, 0, positive)
  a:alu('mov', 3, 0)
  a:label(positive)
  a:jump('>', 2, STATES, skip) -- the verifier does not know that no other tag is used
  local key = a:take(24)
  local found = is_sent and plan.outliers and { start = a:take(8), word = a:take(8), ns = a:take(8), kind = a:take(8) }
  if found then
    a:store(8, FRAME, found.word, 1)
    a:store(8, FRAME, found.ns, 3)
    a:store(8, FRAME, found.kind, 2)
  end
  if of.rows then
    a:store(8, FRAME, key, 7)
    a:store(8, FRAME, key + 8, 2)
    of.rows:add(a, self.places, key, nil, function(at)
      for off = 0, 8, 8 do
        if name then self.source:load(a, 8, 1, name, off) else a:alu('mov', 1, 0) end
        a:store(8, FRAME, at + off, 1)
      end
    end)
  else
    a:alu_r('mov', 4, 2)
    of.cells:add(a, self.places, nil, true)
  end
  if found then self:send(found) end
  a:label(skip)
end

--- Generates r9 = the address of the event that is kept for the thread in r7. Jumps if there is none.
function Program:place(none)
  local of = self.of
  self:find_in(of.kept, of.has_all and outliers.more(of.plan.outliers) or nil, none)
end

--- Generates code that sends a state if it took too long. Keeps r7 to r9.
function Program:send(found)
  local a, of = self.a, self.of
  local plan, sent, word, none = of.plan.outliers, a:new_label(), a:take(8), a:new_label()
  a:load(8, 3, FRAME, found.ns)
  a:value(1, plan.than)
  a:jump_r('<=', 3, 1, sent)
  a:store(8, FRAME, word, 9)
  a:map_value(1, of.no_event, 0)
  a:store(8, FRAME, found.start, 1)
  self:place(none)
  a:store(8, FRAME, found.start, 9)
  a:label(none)
  outliers.send(a, self.source, self.places, plan, self.role.sample, found, self.ring, 0, function()
    self:count 'outliers'
  end)
  a:load(8, 9, FRAME, word)
  a:label(sent)
end

--- Generates code that lets the thread be in a state from now on.
---@param tag integer|'r2'
---@param keeps? boolean the event, if the state is one that may be sent
function Program:begin(tag, keeps)
  local a, of = self.a, self.of
  self:set_word(tag)
  if not keeps or not of.plan.outliers then return end
  local word, unkept, kept = a:take(8), a:new_label(), a:new_label()
  a:store(8, FRAME, word, 1)
  if tag == 'r2' then a:jump('==', 2, OUT, kept) end
  if not of.has_all then self:make_place(unkept) end
  self:place(unkept)
  outliers.keeper(a, self.source, self.places, self.role.sample, 0, function() a:load(8, 1, FRAME, word) end)()
  a:go(kept)
  a:label(unkept)
  self:count 'unkept'
  a:label(kept)
end

--- Generates code that makes a place for the event of the thread in r7, if it has none. Uses r9.
function Program:make_place(full)
  local a, of = self.a, self.of
  local there, key = a:new_label(), a:take(8)
  local missing = a:new_label()
  self:place(missing)
  a:go(there)
  a:label(missing)
  a:store(8, FRAME, key, 7)
  a:map(1, of.kept)
  a:address(2, FRAME, key)
  a:map_value(3, of.no_event, 0)
  a:alu('mov', 4, 0)
  a:call 'map_update_elem'
  a:jump('!=', 0, 0, full)
  a:label(there)
end

--- Generates code that removes the event of a thread that has ended.
function Program:forget()
  local a, of = self.a, self.of
  if not of.plan.outliers or of.has_all then return end
  local lives, key = a:new_label(), a:take(8)
  a:jump('!=', 2, OUT, lives)
  a:store(8, FRAME, key, 7)
  a:map(1, of.kept)
  a:address(2, FRAME, key)
  a:call 'map_delete_elem'
  a:label(lives)
end

-- Events ----------------------------------------------------------------------------------------------

function Program:leaves(field, state, name)
  local a, of = self.a, self.of
  local ends, next = a:new_label(), a:new_label()
  self:find(field)
  if not of.plan.only then self:from_start(ON_CPU) end
  a:alu_r('mov', 2, 1)
  a:alu('and', 2, OUT)
  a:jump('==', 2, ON_CPU, ends)
  a:jump('==', 2, 0, next)
  a:jump('==', 2, OUT, next)
  self:count(of.plan.only and 'wakeups' or 'switches')
  a:go(next)
  a:label(ends)
  self:add(name, false)
  a:label(next)
  self:load_tag(state)
  self:begin('r2', true)
  if of.plan.outliers and not of.has_all then
    a:map_value(9, of.words, 0)
    a:alu_r('mov', 1, 7)
    a:alu('lsh', 1, 3)
    a:alu_r('add', 9, 1)
    a:load(8, 2, 9, 0)
    a:alu('and', 2, OUT)
    self:forget()
  end
end

function Program:enters(field, name)
  local a = self.a
  local running, next, slot = a:new_label(), a:new_label(), a:take(8)
  self:find(field)
  self:from_start(QUEUED)
  a:alu_r('mov', 2, 1)
  a:alu('and', 2, OUT)
  a:jump('==', 2, 0, next)
  a:jump('==', 2, OUT, next)
  a:jump('==', 2, ON_CPU, running)
  a:store(8, FRAME, slot, 2)
  self:add(name, true)
  a:load(8, 2, FRAME, slot)
  a:jump('==', 2, QUEUED, next)
  self:count 'wakeups'
  a:go(next)
  a:label(running)
  self:count 'switches'
  a:label(next)
  self:begin(ON_CPU)
end

function Program:wakes(field, name)
  local a, of = self.a, self.of
  local next = a:new_label()
  self:find(field)
  self:from_start 'first'
  a:alu_r('mov', 2, 1)
  a:alu('and', 2, OUT)
  a:jump('==', 2, ON_CPU, 'done')
  a:jump('==', 2, QUEUED, 'done')
  for _, tag in ipairs { 0, OUT } do a:jump('==', 2, tag, of.plan.only and 'done' or next) end
  self:add(name, true)
  a:label(next)
  self:begin(of.plan.only and OUT or QUEUED, not of.plan.only)
end

function Program:born(field)
  self:find(field)
  self:begin(self.of.plan.only and OUT or QUEUED, not self.of.plan.only)
end

--- Where only some states are counted, a task is not seen to run after them.
function Program:exits()
  local a = self.a
  self:find(nil)
  a:alu_r('mov', 2, 1)
  a:alu('and', 2, OUT)
  for _, tag in ipairs { 0, OUT } do a:jump('==', 2, tag, 'done') end
  self:count 'wakeups'
  self:begin(OUT)
end

--- Returns the body of an event's program, for probe.load().
---@param role TaskStatesRole
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function TaskStates:body(role)
  return function(a, source, places)
    local one = setmetatable({ a = a, source = source, places = places, of = self, role = role, time = a:take(8) },
      Program)
    if self.plan.outliers and role.sample and role.sample.number then
      one.ring = outliers.begin(a, self.plan.outliers, role.sample)
    end
    a:store_value(8, FRAME, one.time, 0)
    local function part(body)
      a:within(body)
    end
    if role.leaves then part(function() one:leaves(role.leaves, role.state, role.names[role.leaves]) end) end
    if role.enters then part(function() one:enters(role.enters, role.names[role.enters]) end) end
    if role.wakes then part(function() one:wakes(role.wakes, role.names[role.wakes]) end) end
    if role.born then part(function() one:born(role.born) end) end
    if role.exits then part(function() one:exits() end) end
  end
end

--- Returns the body of the program for InKernel:probe_id_changes(): the state of the thread, which runs, goes on.
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function TaskStates:move_body()
  return function(a)
    for _, id in ipairs { 7, 8 } do a:jump('>=', id, self.nr_threads, 'done') end
    a:map_value(1, self.words, 0)
    a:alu_r('mov', 2, 1)
    for register, id in pairs { 7, 8 } do
      a:alu_r('mov', 3, id)
      a:alu('lsh', 3, 3)
      a:alu_r('add', register, 3)
    end
    a:load(8, 3, 1, 0)
    a:store_value(8, 1, 0, 0)
    a:store(8, 2, 0, 3)
    if self.plan.outliers and not self.has_all then
      local key = a:take(8)
      a:store(8, FRAME, key, 7)
      a:map(1, self.kept)
      a:address(2, FRAME, key)
      a:call 'map_delete_elem'
    end
  end
end

-- What was counted ----------------------------------------------------------------------------------

--- Reads what was written to a side since it was read last.
---@param side integer
---@param add_row fun(tid: integer?, state: integer, sums: ffi.cdata*, counts?: ffi.cdata*, name?: string) tid: nil for
--- threads that have no row, and without rows
---@param add_count fun(tid: integer, state: integer, bucket: integer, count: integer)
function TaskStates:take(side, add_row, add_count)
  if self.cells then
    return self.cells:take(side, function(state, _, sums, counts) add_row(nil, state, sums, counts) end)
  end
  self.rows:take(side, function(key, state, sums, counts, name)
    add_row(key and tonumber(key[0]), state, sums, counts, name)
  end, function(key, state, bucket, count) add_count(tonumber(key[0]), state, bucket, count) end)
end

--- Calls a function for each target whose current state is known.
---@param call fun(tid: integer, state: integer, since?: integer64) since: ns of CLOCK_MONOTONIC; nil: from the start
function TaskStates:each(call)
  local words, marks = ffi.cast(words_type, self.words.bytes), self.plan.threads.marks.bytes
  for tid = 1, self.nr_threads - 1 do
    local word = words[tid]
    local tag = tonumber(word % (OUT + 1))
    if marks[tid] == 0 then -- luacheck: ignore 542
    elseif word == 0 then
      if self.first.bytes[tid] ~= 0 then call(tid, self.first.bytes[tid]) end
    elseif tag ~= OUT then
      call(tid, tag, word / (OUT + 1))
    end
  end
end

--- Copies the event that began the current state of a thread.
---@param tid integer
---@param state integer
---@param since integer64 ns of CLOCK_MONOTONIC
---@param out ffi.cdata* struct outlier *
---@return boolean found
function TaskStates:kept_event(tid, state, since, out)
  local kept
  if self.has_all then
    kept = self.kept.bytes + tid * outliers.more(self.plan.outliers)
  else
    kept = ffi.new('uint8_t[?]', self.kept.value_size)
    local lib = assert(libbpf.open())
    if lib.bpf_map_lookup_elem(self.kept.fd, ffi.new('uint64_t[1]', tid), kept) ~= 0 then return false end
  end
  return outliers.copy_kept(self.plan.outliers, kept, since * (OUT + 1) + state, out)
end

return task_states
