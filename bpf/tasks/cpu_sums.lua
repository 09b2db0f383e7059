-- SPDX-License-Identifier: GPL-2.0-only
--- Programs that add up how long each task runs on each CPU. A CPU has a note of who runs on it, and since when. When
--- an interval ends, settle() adds what has run on each CPU until now, and the CPU continues on the other side of the
--- sums, so that the first one can be read at rest. A CPU takes part from its first settle().
---
--- In a program, r7 is the thread, r8 the time, and r9 the address of the note.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local kernel_sums = require 'bpf.gen.sums'
local program = require 'bpf.gen.program'
local targets = require 'bpf.gen.targets'
local types = require 'bpf.gen.kernel_types'

local CONTEXT, FRAME = asm.CONTEXT, asm.FRAME
local cpu_times = {}

local NR_PRIOS = 140 -- MAX_PRIO of the kernel
local MOST_ROWS = 65536
local NOTE = { since = 0, tid = 8, is_wanted = 16, side = 24, comm = 32, size = 64 } -- since: 0: never settled
local CONTROL = { side = 0, is_last = 8, unreported = 16, size = 24 }
local BEGUN, ENDED = 0, 8 -- offsets in `limits`
local words_type = ffi.typeof 'uint64_t *'

---@class CpuTimesPlan
---@field nr_cpus integer
---@field sides integer see Switch
---@field cpus? string list of those that are traced; nil: all
---@field only_comm? boolean rows by name, not by thread
---@field prio? fun(priority: integer): boolean only tasks of these priorities
---@field threads? Targets only these count

---@class CpuTimes
---@field plan CpuTimesPlan
local CpuTimes = {}
CpuTimes.__index = CpuTimes

--- Makes the maps. Refuses what BPF cannot do.
---@param plan CpuTimesPlan
---@return CpuTimes
function cpu_times.new(plan)
  local self = setmetatable({ plan = plan }, CpuTimes)
  self.notes, self.control = program.mapped(plan.nr_cpus * NOTE.size, 'cpu_notes'), program.mapped(CONTROL.size,
    'cpu_control')
  self.limits = plan.threads and plan.threads.limits or program.mapped(16, 'cpu_limits')
  ffi.cast(words_type, self.limits.bytes)[ENDED / 8] = -1ULL
  self.rows = kernel_sums.rows(plan.only_comm and 3 or 2, { nr_cpus = plan.nr_cpus, sides = plan.sides,
    most = MOST_ROWS })
  if plan.prio then
    self.prios = program.mapped(NR_PRIOS, 'cpu_prios')
    for priority = 0, NR_PRIOS - 1 do self.prios.bytes[priority] = plan.prio(priority) and 1 or 0 end
  end
  return self
end

-- Parts of a program --------------------------------------------------------------------------------

--- Generates r9 = the address of the CPU's note, and r8 = the time. The CPU's number on the stack was checked before it
--- was stored: older verifiers do not know the range of a number that is checked after it was stored and loaded again.
local function begin(self, a, places)
  a:load(8, 1, FRAME, places.cpu)
  a:alu('mul', 1, NOTE.size)
  a:map_value(9, self.notes, 0)
  a:alu_r('add', 9, 1)
  a:call 'ktime_get_ns'
  a:alu_r('mov', 8, 0)
end

--- Generates r0 = whether the priority in r0 is wanted. Uses r1.
local function is_wanted(self, a)
  if not self.plan.prio then return a:alu('mov', 0, 1) end
  local none, done = a:new_label(), a:new_label()
  a:jump('>=', 0, NR_PRIOS, none)
  a:map_value(1, self.prios, 0)
  a:alu_r('add', 1, 0)
  a:load(1, 0, 1, 0)
  a:go(done)
  a:label(none)
  a:alu('mov', 0, 0)
  a:label(done)
end

--- Generates code that adds the time from the note until now to the row of its thread.
---@param write_comm fun(at: integer) generates code that writes the name to the stack
---@param is_complete boolean the thread leaves the CPU
local function add(self, a, places, write_comm, is_complete)
  local plan, none, key = self.plan, a:new_label(), a:take(self.rows:key_size())
  local failed, side = a:take(8), a:take(8)
  local from, to = a:new_label(), a:new_label()
  if plan.threads then plan.threads:check_id(a, 7, none) end
  a:map_value(2, self.limits, 0)
  a:alu_r('mov', 3, 8)
  a:load(8, 1, 2, ENDED)
  a:jump_r('<=', 3, 1, to)
  a:alu_r('mov', 3, 1)
  a:label(to)
  a:load(8, 0, 9, NOTE.since)
  if plan.threads then
    a:load(8, 1, 2, BEGUN)
    a:jump('==', 1, 0, none)
    a:jump_r('>=', 0, 1, from)
    a:alu_r('mov', 0, 1)
  end
  a:label(from)
  a:alu_r('sub', 3, 0)
  a:jump('s<=', 3, 0, none)
  a:load(8, 1, FRAME, places.cpu)
  a:store(8, FRAME, key, 1)
  if plan.only_comm then write_comm(key + 8) else a:store(8, FRAME, key + 8, 7) end
  a:store_value(8, FRAME, failed, is_complete and 0 or 1)
  a:load(8, 1, 9, NOTE.side)
  a:alu('add', 1, 1)
  a:store(8, FRAME, side, 1)
  self.rows:add(a, { cpu = places.cpu, side = side }, key, failed)
  a:label(none)
end

--- Generates code that notes who runs from now on: r7, with the priority in r0.
local function note(self, a)
  is_wanted(self, a)
  a:store(8, 9, NOTE.is_wanted, 0)
  a:store(8, 9, NOTE.tid, 7)
  a:store(8, 9, NOTE.since, 8)
end

--- Generates code that counts a switch that the kernel has not reported: the CPU leaves r7, and not who was noted, r1.
local function count_unreported(self, a, done)
  if self.plan.prio then return end -- a priority may change while a task runs
  targets.check_missing(a, self.plan.threads, done)
  a:map_value(2, self.control, CONTROL.unreported)
  a:alu('mov', 1, 1)
  a:atomic_add(8, 2, 0, 1)
end

--- Returns the body of the program of switches, for probe.load().
---@param fields table<string, Field>
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function CpuTimes:body(fields)
  return function(a, source, places)
    local same, next = a:new_label(), a:new_label()
    local function copy(name, write)
      for off = 0, 8, 8 do
        source:load(a, 8, 1, fields[name], off)
        write(off)
      end
    end
    begin(self, a, places)
    a:load(8, 1, 9, NOTE.since)
    a:jump('==', 1, 0, 'done')
    source:load(a, 4, 7, fields.prev_pid, 0)
    a:load(8, 1, 9, NOTE.tid)
    a:jump_r('==', 1, 7, same)
    count_unreported(self, a, next)
    a:go(next)
    a:label(same)
    a:jump('==', 7, 0, next)
    a:load(8, 1, 9, NOTE.is_wanted)
    a:jump('==', 1, 0, next)
    source:load(a, 4, 0, fields.prev_prio, 0)
    is_wanted(self, a)
    a:jump('==', 0, 0, next)
    add(self, a, places, function(at)
      copy('prev_comm', function(off) a:store(8, FRAME, at + off, 1) end)
    end, true)
    a:label(next)
    source:load(a, 4, 7, fields.next_pid, 0)
    source:load(a, 4, 0, fields.next_prio, 0)
    note(self, a)
    if self.plan.only_comm then
      copy('next_comm', function(off) a:store(8, 9, NOTE.comm + off, 1) end)
    end
  end
end

--- Returns the body of the program for InKernel:probe_id_changes(): what a thread has run belongs to its new id.
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function CpuTimes:move_body()
  return function(a, _, places)
    a:load(8, 1, FRAME, places.cpu)
    a:alu('mul', 1, NOTE.size)
    a:map_value(9, self.notes, 0)
    a:alu_r('add', 9, 1)
    a:load(8, 1, 9, NOTE.tid)
    a:jump_r('!=', 1, 7, 'done')
    a:store(8, 9, NOTE.tid, 8)
  end
end

--- Loads the program of settle().
function CpuTimes:load_settle()
  local a = asm.new()
  local places = { cpu = a:take(8) }
  local known, other, settled, running = a:new_label(), a:new_label(), a:new_label(), a:take(8)
  a:alu_r('mov', CONTEXT, 1)
  a:call 'get_smp_processor_id'
  a:jump('>=', 0, self.plan.nr_cpus, 'done')
  a:store(8, FRAME, places.cpu, 0)
  a:call 'get_current_task_btf'
  a:load(4, 7, 0, (types.member('task_struct', 'pid')))
  a:load(4, 1, 0, (types.member('task_struct', 'prio')))
  a:store(8, FRAME, running, 1)
  begin(self, a, places)
  a:load(8, 1, 9, NOTE.since)
  a:jump('!=', 1, 0, known)
  a:load(8, 0, FRAME, running)
  note(self, a)
  a:go(settled)
  a:label(known)
  a:load(8, 1, 9, NOTE.tid)
  a:jump_r('!=', 1, 7, other)
  local function add_noted()
    local skip = a:new_label()
    a:jump('==', 7, 0, skip)
    a:load(8, 1, 9, NOTE.is_wanted)
    a:jump('==', 1, 0, skip)
    add(self, a, places, function(at)
      for off = 0, 8, 8 do
        a:load(8, 1, 9, NOTE.comm + off)
        a:store(8, FRAME, at + off, 1)
      end
    end, false)
    a:label(skip)
    a:store(8, 9, NOTE.since, 8)
  end
  add_noted()
  a:go(settled)
  a:label(other) -- programs on switches do not run any more; then it ran until they ended
  a:map_value(1, self.control, CONTROL.is_last)
  a:load(8, 1, 1, 0)
  a:jump('==', 1, 0, settled)
  a:load(8, 7, 9, NOTE.tid)
  add_noted()
  a:label(settled)
  a:map_value(1, self.control, CONTROL.side)
  a:load(8, 1, 1, 0)
  a:store(8, 9, NOTE.side, 1)
  a:done()
  self._settle = program.load(a, { type = 'raw_tracepoint', name = 'cpu_settle' })
end

-- What was counted ----------------------------------------------------------------------------------

local function control(self) return ffi.cast(words_type, self.control.bytes) end

--- Adds what has run until now, and lets the CPUs continue on the other side.
---@param is_last boolean the programs on switches have ended
---@return integer side that can be read
function CpuTimes:settle(is_last)
  local before = tonumber(control(self)[CONTROL.side / 8])
  control(self)[CONTROL.side / 8] = self.plan.sides > 1 and 1 - before or 0
  control(self)[CONTROL.is_last / 8] = is_last and 1 or 0
  program.run_on_cpus(self._settle, self.plan.cpus)
  return before + 1
end

--- Lets CPUs take part.
function CpuTimes:begin() program.run_on_cpus(self._settle, self.plan.cpus) end

--- Limits the time that counts. to: ns of CLOCK_MONOTONIC
function CpuTimes:limit(to)
  local limits = ffi.cast(words_type, self.limits.bytes)
  if limits[ENDED / 8] > to then limits[ENDED / 8] = to end
end

--- Returns the number of switches that the kernel has not reported.
---@return integer
function CpuTimes:unreported() return tonumber(control(self)[CONTROL.unreported / 8]) end

--- Reads what was written to a side since it was read last.
---@param side integer
---@param add_row fun(cpu?: integer, who: integer|string, sums: ffi.cdata*) cpu: nil for rows that had no room
function CpuTimes:take(side, add_row)
  self.rows:take(side, function(key, _, sums)
    if not key then return add_row(nil, 0, sums) end
    local who = tonumber(key[1])
    if self.plan.only_comm then who = ffi.string(ffi.cast('const char *', key + 1)) end
    add_row(tonumber(key[0]), who, sums)
  end)
end

return cpu_times
