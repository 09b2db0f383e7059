-- SPDX-License-Identifier: GPL-2.0-only
--- The switch of a run's programs: a mapped byte for each CPU. Programs do nothing while it is 0. Otherwise it is 1 or
--- 2, the side of their maps into which they write: at the end of an interval they continue on the other side, so that
--- the first one can be read at rest.
local asm = require 'bpf.gen.asm'
local ffi = require 'ffi'
local libbpf = require 'bindings.bpf.libbpf'
local libc = require 'bindings.base.libc'
local program = require 'bpf.gen.program'
local sys = require 'bindings.base.sys'

local switch = {}

local MEMBARRIER = ffi.arch == 'x64' and 324 or 283
local GLOBAL = 1 -- MEMBARRIER_CMD_GLOBAL

---@class Switch
---@field nr_cpus integer that this kernel can have
---@field sides integer 1 or 2
---@field off_time? number ns of CLOCK_MONOTONIC
---@field side integer 1 or 2: where programs write, or wrote last
local Switch = {}
Switch.__index = Switch

--- Returns a switch that is off. Refuses without BPF.
---@param cpus? integer[] nil: all CPUs
---@param sides integer 1 if the run has no intervals
---@return Switch
function switch.new(cpus, sides)
  local lib = libbpf.open()
  local nr_cpus = lib and lib.libbpf_num_possible_cpus() or 1
  local map = program.mapped(nr_cpus, 'switch')
  return setmetatable({ nr_cpus = nr_cpus, sides = sides, side = 1, _map = map, _cpus = cpus }, Switch)
end

--- Makes a map for each side. The kernel clears all of a map when it makes it, which takes up to 6 ms.
---@param sides integer
---@param make fun(): Descriptor
---@return Descriptor[] by side; the same twice if there is only one side
function switch.maps(sides, make)
  local first = make()
  return { first, sides > 1 and make() or first }
end

--- Generates code that puts the address of the current CPU's part of a mapped array into a register. The parts of all
--- CPUs are there once for each side. Uses r0 and r1.
---@param a Asm
---@param places ProbePlaces
---@param to integer register: 0, or one from 2
---@param of { map: Descriptor, cpus: integer, sides: integer, size: integer, off?: integer } size: bytes of a part
---@param none? string label, if the CPU has no part
function switch.part(a, places, to, of, none)
  a:load(8, 0, asm.FRAME, places.cpu)
  if none then a:jump('>=', 0, of.cpus, none) end
  if of.sides > 1 then
    local first = a:new_label()
    a:load(8, 1, asm.FRAME, places.side)
    a:jump('!=', 1, 2, first)
    a:alu('add', 0, of.cpus)
    a:label(first)
  end
  a:alu('mul', 0, of.size)
  a:map_value(to == 0 and 1 or to, of.map, of.off or 0)
  a:alu_r('add', to, to == 0 and 1 or 0)
end

--- Sets the bytes of the CPUs that are traced.
local function set(self, value)
  if not self._cpus then return ffi.fill(self._map.bytes, self.nr_cpus, value) end
  for _, cpu in ipairs(self._cpus) do
    if cpu < self.nr_cpus then self._map.bytes[cpu] = value end
  end
end

--- Waits until programs that were running have ended.
local function wait() libc.syscall(MEMBARRIER, ffi.cast('int', GLOBAL), ffi.cast('int', 0)) end

--- Lets programs run.
function Switch:on() set(self, self.side) end

--- Lets the programs stop right before the events of a session.
---@param session ffi.cdata*
function Switch:end_with(session) ffi.C.session_clear_at_stop(session, self._map.bytes, self.nr_cpus) end

--- Makes programs continue on the other side, which they must have: the run had intervals when they were loaded. Those
--- that have been stopped do not begin again.
---@return integer side that can be read now
function Switch:turn()
  assert(self.sides == 2, 'the maps of the programs have one side')
  local before = self.side
  self.side = 3 - before
  for cpu = 0, self.nr_cpus - 1 do
    if self._map.bytes[cpu] ~= 0 then self._map.bytes[cpu] = self.side end
  end
  wait()
  return before
end

--- Ends the programs' work.
---@return integer side that can be read now
function Switch:off()
  set(self, 0)
  self.off_time = sys.now()
  wait()
  return self.side
end

--- Generates code that jumps to `off` if the switch is off on this CPU, and otherwise leaves the CPU in r0 and the side
--- in r1.
---@param a Asm
---@param off string label
function Switch:check(a, off)
  a:call 'get_smp_processor_id'
  a:jump('>=', 0, self.nr_cpus, off)
  a:map_value(1, self._map, 0)
  a:alu_r('add', 1, 0)
  a:load(1, 1, 1, 0)
  a:jump('==', 1, 0, off)
end

return switch
