-- SPDX-License-Identifier: GPL-2.0-only
--- Programs that add up how long tasks are off their CPU, by name, state and stack, by the rules of
--- scripts/lib/engines/off_cpu/waits.lua. The switch from a task notes the time, the state and the stack with the task,
--- and the switch to it adds the time to a row. The scheduler's locks order the switches of a task, and it calls the
--- programs with interrupts disabled, so nothing is atomic.
---
--- The two halves of a stack are numbers: hashes of 64 bits. The first time that one is seen its addresses are kept.
---
--- In a program, r7 is the thread, r8 the time of the event, and r9 the address of the thread's start.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local bit = require 'bit'
local chain = require 'bpf.gen.chain'
local kernel_sums = require 'bpf.gen.sums'
local known_stacks = require 'bpf.tasks.known_stacks'
local known_walks = require 'bpf.stacks.known_walks'
local libbpf = require 'bindings.bpf.libbpf'
local program = require 'bpf.gen.program'
local sched_switch = require 'bindings.expr.sched_switch'
local starts = require 'bpf.gen.starts'
local task_words = require 'bpf.tasks.task_words'

local C = ffi.C
local FRAME = asm.FRAME
local ON_CPU, STATES = sched_switch.ON_CPU, #sched_switch.STATES
local OUT = task_words.OUT -- the task has ended
local START = { word = 0, kernel = 8, user = 16, comm = 24, size = 40 }
local KEY = { kernel = 0, user = 8, comm = 16, state = 32, parts = 5 } -- of a row
local KEPT = { pid = chain.MAX_SIZE, time = chain.MAX_SIZE + 8, size = chain.MAX_SIZE + 16 } -- the addresses of a half
local NO_STACK, BEFORE = 0, 1 -- in place of a hash; BEFORE: the task was off its CPU when the run began
local MOST_ROWS, MOST_STACKS, MOST_TASKS = 65536, 16384, 2 ^ 17
local words_type, const_words_type = ffi.typeof 'uint64_t *', ffi.typeof 'const uint64_t *'
local start_type = ffi.typeof('uint8_t[$]', START.size)
local HALVES = {
  { part = C.STACK_KERNEL, at = 'kernel', find = 'find', note = 'note' },
  { part = C.STACK_USER, at = 'user', find = 'find_program', note = 'note_program' },
}

local wait_sums = { BEFORE = BEFORE }

---@class WaitSumsPlan
---@field nr_cpus integer
---@field nr_threads integer all thread ids are less
---@field sides integer see Switch
---@field parts integer enum stack_parts
---@field max integer frames, see Chains:collect()
---@field than? integer ns: only longer waits count
---@field threads? Targets only these count

---@class WaitSums: TaskWords
---@field plan WaitSumsPlan

---@class WaitSumsProgram: TaskWordsProgram
---@field places ProbePlaces
---@field of WaitSums
---@field start integer place on the stack: the address of the thread's start
local WaitSums, Program = task_words.classes()

--- Returns an odd number that traced programs do not know, so that none can make two stacks with the same hash.
local function random_multiplier()
  local file = assert(io.open('/dev/urandom', 'rb'))
  local bytes = file:read(8)
  file:close()
  return bit.bor(ffi.cast(const_words_type, bytes)[0], 1ULL)
end

--- Makes the maps. Refuses what BPF cannot do.
---@param plan WaitSumsPlan
---@return WaitSums
function wait_sums.new(plan)
  local self = setmetatable({ plan = plan, has_all = plan.nr_threads <= MOST_TASKS }, WaitSums)
  self.starts = self.has_all and program.mapped(plan.nr_threads * START.size, 'wait_starts')
    or program.hash(8, START.size, MOST_TASKS, 'wait_starts')
  self.first = program.mapped(plan.nr_threads, 'wait_first')
  task_words.init(self, plan, 'wait', { 'switches', 'stackless', 'unkept' })
  self.stacks = program.hash(8, KEPT.size, MOST_STACKS, 'wait_stacks')
  self.chains, self.known_stacks = chain.new(plan.walker), known_stacks.new()
  self.known_walks = plan.walker and known_walks.new(plan.walker.tables)
  self.rows = kernel_sums.rows(KEY.parts, { nr_cpus = plan.nr_cpus, sides = plan.sides, most = MOST_ROWS,
    kinds = STATES + 1 })
  self.multiplier = random_multiplier()
  self.known = {} -- halves of stacks by hash, which the kernel keeps
  return self
end

-- Parts of a program --------------------------------------------------------------------------------

--- Generates r9 = the address of the start of the thread in r7. Jumps if there is none.
function Program:place(none)
  local of = self.of
  self:find_in(of.starts, of.has_all and START.size or nil, none)
end

--- Generates code that makes a start for the thread in r7. Jumps if there is no room.
function Program:make_place(full)
  local a, of = self.a, self.of
  local key, zeros = a:take(8), a:take(START.size)
  a:store(8, FRAME, key, 7)
  for at = 0, START.size - 8, 8 do a:store_value(8, FRAME, zeros + at, 0) end
  a:map(1, of.starts)
  a:address(2, FRAME, key)
  a:address(3, FRAME, zeros)
  a:alu('mov', 4, 1) -- BPF_NOEXIST
  a:call 'map_update_elem'
  a:give(key, 8)
  a:give(zeros, START.size)
  self:place(full)
end

--- Generates code that finds the start of the thread in a field: r7 to r9, and r1 is the word. Jumps to `done` if the
--- thread does not count.
function Program:find(field)
  local a, of = self.a, self.of
  local missing, full, found = a:new_label(), a:new_label(), a:new_label()
  self:thread(field)
  self:place(missing)
  if not of.has_all then
    a:go(found)
    a:label(missing)
    self:make_place(full)
    a:go(found)
    a:label(full)
    self:count 'unkept'
    a:go 'done'
    a:label(found)
  end
  a:load(8, 1, 9, START.word)
end

--- Generates r2 = the hash of the chain of r0 bytes at r9, beginning with r2. Uses r1 and r3 to r5.
function Program:hash()
  local a, again, done = self.a, self.a:new_label(), self.a:new_label()
  a:value(5, self.of.multiplier)
  a:alu('mov', 1, 8)
  a:label(again)
  a:jump('>=', 1, chain.MAX_SIZE, done)
  a:jump_r('>=', 1, 0, done)
  a:alu_r('mov', 3, 9)
  a:alu_r('add', 3, 1)
  a:load(8, 4, 3, 0)
  a:alu_r('xor', 2, 4)
  a:alu_r('mul', 2, 5)
  a:alu_r('mov', 4, 2)
  a:alu('rsh', 4, 32)
  a:alu_r('xor', 2, 4)
  a:alu('add', 1, 8)
  a:go(again)
  a:label(done)
end

--- Generates code that keeps the addresses of the chain at r9, whose hash is on the stack, if they are new. Jumps if
--- there is no room.
function Program:keep(hash, full)
  local a, of = self.a, self.of
  local known = a:new_label()
  local function look_up()
    a:map(1, of.stacks)
    a:address(2, FRAME, hash)
    a:call 'map_lookup_elem'
    a:jump('!=', 0, 0, known)
  end
  look_up()
  a:call 'get_current_pid_tgid'
  a:alu('rsh', 0, 32)
  a:store(8, 9, KEPT.pid, 0)
  a:load(8, 1, FRAME, self.time)
  a:store(8, 9, KEPT.time, 1)
  a:map(1, of.stacks)
  a:address(2, FRAME, hash)
  a:alu_r('mov', 3, 9)
  a:alu('mov', 4, 1) -- BPF_NOEXIST
  a:call 'map_update_elem'
  a:jump('==', 0, 0, known)
  look_up()
  a:go(full)
  a:label(known)
end

--- Generates r0 = the hash of half of the current task's stack, if this CPU has seen it lately. Jumps if not. Returns
--- what generates code that notes a hash for next time.
function Program:recall(half, other)
  local a, of = self.a, self.of
  local walks, known = half.part == C.STACK_USER and of.known_walks, of.known_stacks
  if walks then
    of.chains:state(a, other)
    local entry = walks:find(a, other)
    return function(hash)
      local none = a:new_label()
      of.chains:state(a, none)
      walks:note(a, entry, hash)
      a:label(none)
    end
  elseif known then
    local entry = known[half.find](known, a, other)
    return function(hash) known[half.note](known, a, entry, hash) end
  end
  a:go(other)
end

--- Generates code that notes half of the current task's stack at its start.
function Program:note_half(half)
  local a, of = self.a, self.of
  local none, full, noted, hash = a:new_label(), a:new_label(), a:new_label(), a:take(8)
  local other = a:new_label()
  local note = self:recall(half, other)
  a:alu_r('mov', 2, 0)
  a:go(noted)
  a:label(other)
  a:alu('mov', 8, 0) -- nothing interrupts this program, and it interrupts no other one that collects stacks
  of.chains:collect(a, half.part, of.plan.max, none)
  a:jump('<=', 0, 8, none)
  if half.part == C.STACK_USER then
    a:store(8, FRAME, hash, 0)
    a:call 'get_current_pid_tgid'
    a:alu_r('mov', 2, 0)
    a:alu('rsh', 2, 32)
    a:load(8, 0, FRAME, hash)
  else
    a:alu('mov', 2, 0)
  end
  self:hash()
  a:alu('or', 2, 2) -- neither NO_STACK nor BEFORE
  a:store(8, FRAME, hash, 2)
  self:keep(hash, full)
  if note then note(hash) end
  a:load(8, 2, FRAME, hash)
  a:go(noted)
  a:label(full)
  self:count 'stackless'
  a:label(none)
  a:alu('mov', 2, NO_STACK)
  a:label(noted)
  a:load(8, 9, FRAME, self.start)
  a:store(8, 9, START[half.at], 2)
  a:give(hash, 8)
end

-- The two sides of a switch ---------------------------------------------------------------------------

function Program:leaves(fields)
  local a, of = self.a, self.of
  local known = a:new_label()
  self:find(fields.prev_pid)
  a:alu('and', 1, OUT)
  for _, tag in ipairs { 0, ON_CPU, OUT } do a:jump('==', 1, tag, known) end
  self:count 'switches'
  a:label(known)
  self:load_tag(fields.prev_state)
  self:set_word 'r2'
  a:jump('==', 2, OUT, 'done')
  for off = 0, 8, 8 do
    self.source:load(a, 8, 1, fields.prev_comm, off)
    a:store(8, 9, START.comm + off, 1)
  end
  a:store(8, FRAME, self.start, 9)
  a:load(8, 8, 9, START.word)
  a:alu('and', 8, OUT)
  for _, half in ipairs(HALVES) do
    if bit.band(of.plan.parts, half.part) ~= 0 then self:note_half(half) end
  end
end

--- Generates r1 = the word of a thread of which this is the first event, and which was off its CPU at the start.
function Program:from_start(fields)
  local a, known = self.a, self.a:new_label()
  a:jump('!=', 1, 0, known)
  self:load_first(known)
  for off = 0, 8, 8 do
    self.source:load(a, 8, 1, fields.next_comm, off)
    a:store(8, 9, START.comm + off, 1)
  end
  a:store_value(8, 9, START.kernel, BEFORE)
  self:word_from_start()
  a:label(known)
end

--- Generates code that adds the wait whose word is in r1 and whose state is in r2. Keeps r7 to r9.
function Program:add(skip)
  local a, of = self.a, self.of
  local key = a:take(of.rows:key_size())
  a:alu_r('mov', 3, 8)
  a:alu('rsh', 1, starts.TAG_BITS)
  a:alu_r('sub', 3, 1)
  a:jump('s<', 3, 0, skip)
  if of.plan.than then
    a:value(1, of.plan.than)
    a:jump_r('<=', 3, 1, skip)
  end
  a:store(8, FRAME, key + KEY.state, 2)
  for at, from in pairs { [KEY.kernel] = START.kernel, [KEY.user] = START.user, [KEY.comm] = START.comm,
    [KEY.comm + 8] = START.comm + 8 } do
    a:load(8, 1, 9, from)
    a:store(8, FRAME, key + at, 1)
  end
  of.rows:add(a, self.places, key)
  a:give(key, of.rows:key_size())
end

function Program:enters(fields)
  local a = self.a
  local running, next = a:new_label(), a:new_label()
  self:find(fields.next_pid)
  self:from_start(fields)
  a:alu_r('mov', 2, 1)
  a:alu('and', 2, OUT)
  a:jump('==', 2, 0, next)
  a:jump('==', 2, OUT, next)
  a:jump('==', 2, ON_CPU, running)
  self:add(next)
  a:go(next)
  a:label(running)
  self:count 'switches'
  a:label(next)
  self:set_word(ON_CPU)
end

--- Returns the body of the program of switches, for probe.load().
---@param fields table<string, Field> of sched:sched_switch
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function WaitSums:body(fields)
  return function(a, source, places)
    local one = setmetatable({ a = a, source = source, places = places, of = self, time = a:take(8),
      start = a:take(8) }, Program)
    a:store_value(8, FRAME, one.time, 0)
    a:within(function() one:leaves(fields) end)
    a:within(function() one:enters(fields) end)
  end
end

-- What was added up ---------------------------------------------------------------------------------

--- Copies the addresses of half of a stack, which begin with their number. nil: there are none.
local function half_of(self, hash)
  local half = self.known[tostring(hash)]
  if half or hash <= BEFORE then return half end
  half = ffi.new('uint8_t[?]', KEPT.size)
  local lib = assert(libbpf.open())
  if lib.bpf_map_lookup_elem(self.stacks.fd, ffi.new('uint64_t[1]', hash), half) ~= 0 then return end
  self.known[tostring(hash)] = half
  return half
end

--- Writes the chain of a stack as perf does.
---@param out ffi.cdata* uint64_t *, of wait_sums.MAX_WORDS
---@param kernel ffi.cdata* uint64_t
---@param user ffi.cdata* uint64_t
---@return boolean found
---@return integer? pid of the process, and
---@return ffi.cdata*? time when it was first seen, ns of CLOCK_MONOTONIC
function WaitSums:chain(out, kernel, user)
  local n, pid, time = 0, 0, 0ULL
  for _, hash in ipairs { kernel, user } do
    local half = half_of(self, hash)
    if half then
      local words = ffi.cast(words_type, half)
      local more = tonumber(words[0])
      ffi.copy(out + 1 + n, words + 1, 8 * more)
      n, pid, time = n + more, tonumber(words[KEPT.pid / 8]), words[KEPT.time / 8]
    end
  end
  out[0] = n
  return n > 0, pid, time
end
wait_sums.MAX_WORDS = 2 * chain.MAX_SIZE / 8

local function words_of(at) return ffi.cast(words_type, at) end

--- Reads what was written to a side since it was read last.
---@param side integer
---@param add_row fun(state: integer, sums: ffi.cdata*, start?: ffi.cdata*) start: the two halves of the stack, and the
--- name; nil for waits that have no row
function WaitSums:take(side, add_row)
  self.rows:take(side, function(key, state, sums) add_row(state, sums, key and words_of(key)) end)
end

--- Calls a function for each wait that has not ended.
---@param now number ns of CLOCK_MONOTONIC
---@param call fun(state: integer, ns: number, start: ffi.cdata*, tid: integer) start: see take()
function WaitSums:each(now, call)
  local begun = self:begun()
  local before = start_type()
  local function one(tid, at)
    local word = words_of(at)[0]
    local tag = tonumber(word % (OUT + 1))
    if word == 0 and self.first.bytes[tid] ~= 0 then
      words_of(before)[START.kernel / 8] = BEFORE
      at, word, tag = before, begun * (OUT + 1), self.first.bytes[tid]
    end
    local ns = now - tonumber(word / (OUT + 1))
    if word ~= 0 and tag ~= OUT and tag ~= ON_CPU and ns > (self.plan.than or -1) then
      call(tag, ns, words_of(at) + 1, tid)
    end
  end
  local marks = self.plan.threads and self.plan.threads.marks.bytes
  local start, lib = start_type(), not self.has_all and assert(libbpf.open())
  for tid = 1, self.plan.nr_threads - 1 do
    if marks and marks[tid] == 0 then -- luacheck: ignore 542
    elseif self.has_all then
      one(tid, self.starts.bytes + tid * START.size)
    else
      ffi.fill(start, START.size)
      lib.bpf_map_lookup_elem(self.starts.fd, ffi.new('uint64_t[1]', tid), start)
      one(tid, start)
    end
  end
end

return wait_sums
