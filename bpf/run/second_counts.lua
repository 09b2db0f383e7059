-- SPDX-License-Identifier: GPL-2.0-only
--- Second counts: programs of type tracing count events that perf takes, behind the same filters. perf's own counter
--- does not see what is hidden from perf: by a program of another tracer that returns 0, or by the kernel. That costs
--- the traced task some 70 ns per event, so it is only done where there is a reason.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local probe = require 'bpf.gen.probe'
local program = require 'bpf.gen.program'
local switch = require 'bpf.gen.switch'

local second_counts = {}

local COUNT = 64 -- bytes: a line of the CPU's cache
local ALL, IDLE = 0, 8 -- offsets in it; the second: while the CPU's idle task was the current one
local FRAME = asm.FRAME

---@class SecondCounts
---@field package _switch Switch
---@field package _counts table<any, Descriptor>
local SecondCounts = {}
SecondCounts.__index = SecondCounts

--- Refuses without BPF.
---@param cpus? integer[] nil: all CPUs
---@return SecondCounts
function second_counts.new(cpus)
  return setmetatable({ switch = switch.new(cpus, 1), _counts = {}, _programs = {}, _links = {} }, SecondCounts)
end

--- Counts an event, too, once the switch is on. Refuses what programs cannot do.
---@param event any names the count
---@param spec ProbeSpec with this switch
function SecondCounts:add(event, spec)
  local counts = program.mapped(self.switch.nr_cpus * COUNT, 'second_counts')
  local loaded = probe.load(spec, function(a, _, places)
    a:load(8, 1, FRAME, places.cpu)
    a:alu('mul', 1, COUNT)
    a:map_value(2, counts, 0)
    a:alu_r('add', 2, 1)
    a:alu_r('mov', 7, 2)
    a:alu('mov', 1, 1)
    a:atomic_add(8, 7, ALL, 1)
    a:call 'get_current_pid_tgid'
    a:jump('!=', 0, 0, 'done')
    a:alu('mov', 1, 1)
    a:atomic_add(8, 7, IDLE, 1)
  end)
  table.insert(self._links, probe.attach(loaded, spec.calls))
  table.insert(self._programs, loaded)
  self._counts[event] = counts
end

--- Begins to count, when all of perf's events have begun, until right before they stop. So perf never has less, unless
--- something is hidden.
---@param session ffi.cdata*
function SecondCounts:on(session)
  self.switch:end_with(session)
  self.switch:on()
end

--- Removes the programs.
function SecondCounts:off()
  for _, link in ipairs(self._links) do link:close() end
end

--- Returns how many events there were.
---@return number? nil: it was not counted
---@return number? idle of these, while their CPU was idle
function SecondCounts:of(event)
  local counts = self._counts[event]
  if not counts then return end
  local function sum(at)
    local n = 0ULL
    for cpu = 0, self.switch.nr_cpus - 1 do n = n + ffi.cast('uint64_t *', counts.bytes + cpu * COUNT + at)[0] end
    return tonumber(n)
  end
  return sum(ALL), sum(IDLE)
end

return second_counts
