-- SPDX-License-Identifier: GPL-2.0-only
--- The unwind tables of processes in maps that programs read (runtime/stacks/frame_tables). A program that finds a
--- process without tables, or code that they do not cover, asks for them: poll() reads what the process has mapped
--- then. An address space of the kernel (mm_struct) stands beside each process, so that what a process had before
--- execve() is not used.
local bit = require 'bit'
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local program = require 'bpf.gen.program'
local sys = require 'bindings.base.sys'

local C = ffi.C
local tables = {}

local ROWS, SPANS, PROCESSES, ASKED = 2 ^ 22, 2 ^ 17, 16384, 1024
local FIRST_WAIT, LONGEST_WAIT = 1e6, 5e9 -- ns between two readings of a process
local SWEEP = 1e9 -- ns between two looks for processes that have exited
local QUIET, SOON, LATER = 1e9, 2e6, 20e6 -- ns: when nothing was asked for so long, the next look is later
local FEW = 0.05 -- of the stacks, which are not worth a line
local MOST, SHARE = 20e6, 3 -- ns that a look may take; one of so many ns is spent on reading
local words_type = ffi.typeof 'uint64_t *'

tables.ROW = { addr = 0, rule = 4, shift = 3, most = ROWS } -- shift: of its size
tables.SPAN = { start = 0, end_ = 8, bias = 16, row = 24, rows = 28, shift = 5, most = SPANS }
tables.SPACE = { mm = 0, first = 8, count = 12, size = 16 }

-- What programs count: requests for tables; stacks that were walked to their end, stacks of processes that have no
-- tables yet, and those that end where memory could not be read; frames without a table, and those whose rule has no
-- form. And what the tables are: it changes with them.
tables.COUNTERS = { asked = 0, whole = 8, no_process = 16, cut = 24, no_table = 32, other = 40, generation = 48,
  size = 56 }
local COUNTERS = tables.COUNTERS

---@class StackTables
---@field rows Descriptor struct frame_row
---@field spans Descriptor struct frame_span
---@field spaces Descriptor by process: the address space in the kernel, and its spans
---@field asked Descriptor processes whose tables a program has asked for, with their address spaces
---@field cache Descriptor for each CPU: what walks have found lately
---@field counters Descriptor
---@field package _files ffi.cdata* struct frame_tables *
---@field package _readings table<integer, { wait: number, next: number }> by process
---@field package _nr_readings integer
---@field package _seen table<number, boolean> the address spaces, by place, of which programs may have kept something
---@field package _pending table<integer, ffi.cdata*> processes that will be read, with their address spaces
---@field package _asked integer requests that were seen so far
---@field package _changed number when there was a new one, ns
---@field package _swept number when exited processes were last looked for, ns
---@field package _next number when poll() does something again, ns
local Tables = {}
Tables.__index = Tables

--- Makes the maps. Refuses without BPF.
---@param cache_size integer bytes
---@param levels integer programs on a CPU that interrupt each other
---@return StackTables
function tables.new(cache_size, levels)
  local self = setmetatable({
    rows = program.mapped(bit.lshift(ROWS, tables.ROW.shift), 'frame_rows'),
    spans = program.mapped(bit.lshift(SPANS, tables.SPAN.shift), 'frame_spans'),
    spaces = program.hash(8, tables.SPACE.size, PROCESSES, 'frame_spaces'),
    asked = program.hash(8, 8, ASKED, 'frame_asked'), counters = program.mapped(COUNTERS.size, 'frame_counts'),
    cache = program.memory(cache_size, levels, 'frame_cache'), _readings = {}, _pending = {}, _seen = {}, _asked = 0,
    _nr_readings = 0, _changed = 0, _swept = 0, _next = 0,
  }, Tables)
  self._files = ffi.gc(C.frame_tables_new(ffi.cast('struct frame_row *', self.rows.bytes), ROWS,
    ffi.cast('struct frame_span *', self.spans.bytes), SPANS), C.frame_tables_free)
  if self._files == nil then failure.raise('out of memory') end
  return self
end

--- Returns how often something was counted, see COUNTERS.
---@param name string
---@return integer
function Tables:counted(name) return tonumber(ffi.cast(words_type, self.counters.bytes)[COUNTERS[name] / 8]) end

--- Returns when a process is read; nil: there is no room for one more.
function Tables:_reading(pid)
  local one = self._readings[pid]
  if not one and self._nr_readings < PROCESSES then
    one = { wait = FIRST_WAIT / 2, next = 0 }
    self._readings[pid], self._nr_readings = one, self._nr_readings + 1
  end
  return one
end

--- Reads the tables of a process, or notes that it has none. Does nothing if there are too many processes.
---@param pid integer
---@param mm ffi.cdata*|integer its address space in the kernel; 0: that of its next stack
function Tables:add(pid, mm)
  if not self:_reading(pid) then return end
  local space, value = ffi.new 'struct frame_space', ffi.new 'uint64_t[2]'
  C.frame_tables_update(self._files, pid, space)
  value[0], value[1] = mm, space.first + bit.lshift(space.count + 0ULL, 32)
  program.set(self.spaces, ffi.new('uint64_t[1]', pid), value)
  -- What programs have kept is not true any more if the process has been read before, or if the kernel has used the
  -- address for another one. That of a process named by -p is not known.
  local place = tonumber(mm)
  if self._seen[place] or self._seen[0] then
    local generation = ffi.cast(words_type, self.counters.bytes) + COUNTERS.generation / 8
    generation[0] = generation[0] + 1
  end
  self._seen[place] = true
end

--- Removes processes that have exited.
function Tables:_sweep(now)
  if now < self._swept + SWEEP then return end
  self._swept = now
  C.frame_tables_reclaim(self._files)
  for pid in pairs(self._readings) do
    if not sys.stat('/proc/' .. pid) then
      C.frame_tables_remove(self._files, pid)
      program.remove(self.spaces, ffi.new('uint64_t[1]', pid))
      self._readings[pid], self._pending[pid], self._nr_readings = nil, nil, self._nr_readings - 1
    end
  end
end

--- Reads the tables that programs have asked for. A process that goes on asking, such as one that compiles code for
--- itself, is read less and less often.
---@return number ns until the next call
function Tables:poll()
  local asked, now = self:counted 'asked', sys.now()
  if now < self._next then return self._next - now end
  if asked ~= self._asked then
    self._asked, self._changed = asked, now
    program.take(self.asked, function(key, value)
      self._pending[tonumber(ffi.cast(words_type, key)[0])] = ffi.cast(words_type, value)[0]
    end)
  end
  for pid, mm in pairs(self._pending) do
    local one = self:_reading(pid)
    if not one then
      self._pending[pid] = nil -- its next stack asks again
    elseif now >= one.next and sys.now() < now + MOST then
      one.wait = math.min(2 * one.wait, LONGEST_WAIT)
      one.next = now + one.wait
      self._pending[pid] = nil
      self:add(pid, mm)
    end
  end
  self:_sweep(now)
  self._next = now + math.max((SHARE - 1) * (sys.now() - now), now > self._changed + QUIET and LATER or SOON)
  return self._next - now
end

--- Returns what there is to say about the stacks at the end of a run.
---@return string summary
---@return string? warning
function Tables:report()
  local stats = ffi.new 'struct frame_tables_stats'
  C.frame_tables_read_stats(self._files, stats)
  local whole, cut, no_process = self:counted 'whole', self:counted 'cut', self:counted 'no_process'
  local summary = ('unwind tables in the kernel: %d processes, %d files, %d rows (%d have no form there); walks: %d '
    .. 'whole, %d cut, %d of processes whose tables were not there'):format(stats.processes, stats.files, stats.rows,
    stats.others, whole, cut, no_process)
  if stats.no_room > 0 then
    return summary, ('no room for the unwind tables of %d files: their callers may be missing'):format(stats.no_room)
  elseif stats.no_spans > 0 then
    return summary, ('no room for the unwind tables of %d processes: callers may be missing'):format(stats.no_spans)
  elseif no_process > FEW * (whole + cut + no_process) then
    return summary, ('%d of %d stacks are of processes whose unwind tables were not read yet: callers may be missing')
      :format(no_process, whole + cut + no_process)
  end
  return summary
end

return tables
