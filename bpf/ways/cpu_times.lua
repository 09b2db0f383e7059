-- SPDX-License-Identifier: GPL-2.0-only
--- session.cpu_times: how long tasks run on each CPU. A handler of switches adds that up, or BPF programs do
--- (bpf/tasks/cpu_sums.lua) if nothing needs the events. Both fill the same arrays.
local cpu_clock = require 'bpf.ways.cpu_clock'
local ffi = require 'ffi'
local intern = require 'bindings.base.intern'
local kernel_times = require 'bpf.tasks.cpu_sums'
local output = require 'bindings.print.output'
local public_event = require 'bindings.view.public_event'
local sys = require 'bindings.base.sys'

local C = ffi.C
local cpu_times = {}

---@class CpuTimesSettings
---@field event Event sched:sched_switch
---@field handler fun(ev: Ev) that does the same
---@field moves? Event of session.id_changes()
---@field keys Keys of CPU and thread, or CPU and name
---@field sums Array ns, by key
---@field runs Array
---@field longest Array ns
---@field missed { switches: integer } becomes what the kernel did not report
---@field only_comm? boolean
---@field prio? fun(priority: integer): boolean only tasks of these priorities
---@field named? boolean only the threads that the run names count
---@field duration? number ns of the run

cpu_times.verb = 'cpu'
cpu_times.name, cpu_times.does = 'cpu_times', 'added up'
cpu_times.lacks = { 'reload', 'newest', 'each_event', 'filter' }

--- Returns why programs cannot add up the times; nil if they can.
---@param facts Facts
---@return string?
function cpu_times.refuses(facts)
  return facts.kernel.foreign_pids and "the kernel's thread ids are not those of this pid namespace" or nil
end

--- The switches of a script.
---@class CpuTimesTaker : Offer
---@field package _given CpuTimesSettings
---@field package _kernel? CpuTimes
local CpuTimesTaker = { way = 'cpu_times', attributes = {}, measures_time = true }
CpuTimesTaker.__index = CpuTimesTaker

---@package
function CpuTimesTaker:facts() return {} end -- luacheck: no self

--- Loads the programs.
---@package
---@param kernel InKernel
function CpuTimesTaker:load(kernel)
  local given = self._given
  self._switch, self._run = kernel.switch, kernel.run
  self._kernel = kernel_times.new {
    nr_cpus = kernel.switch.nr_cpus, sides = kernel.switch.sides, cpus = kernel.run.opt.cpus,
    only_comm = given.only_comm, prio = given.prio, threads = given.named and kernel:threads() or nil,
  }
  kernel:probe(self.events[1], self._kernel:body(self.events[1].fields))
  self._kernel:load_settle()
  kernel:probe_id_changes(self._kernel:move_body())
end

--- Lets CPUs take part: from now on, each switch is seen.
local function begin(self, kernel)
  self._begun, self._added = sys.now(), 0
  kernel.switch:on()
  self._kernel:begin()
end

--- With targets it must be known who runs before the session starts a workload.
---@package
---@param kernel InKernel
function CpuTimesTaker:settle(kernel)
  if self._given.named then begin(self, kernel) end
end

---@package
---@param kernel InKernel
function CpuTimesTaker:start(kernel)
  local duration = self._given.duration
  local limit = duration and C.session_exact_time(self._run.session, 0) + math.floor(duration)
  if limit then self._kernel:limit(limit) end
  self._limit = limit and tonumber(limit) or math.huge
  if not self._given.named then begin(self, kernel) end
  self._clocks = not self._given.prio and cpu_clock.begin(self._run, self._given.named) or nil
end

--- Adds what was counted to the script's arrays.
---@package
---@param is_last boolean
function CpuTimesTaker:turn(_, is_last)
  local given, kernel = self._given, self._kernel
  if is_last then
    self._ended = sys.now() -- no program runs any more
    kernel:limit(self._switch.off_time)
  end
  kernel:take(kernel:settle(is_last), function(cpu, who, sums)
    local runs, id = tonumber(sums.count - sums.failed), given.keys.max
    if not cpu then
      intern.add_overflow(given.keys, tonumber(sums.count))
    else
      id = given.keys.id(cpu, type(who) == 'string' and output.safe(who) or who)
    end
    self._added = self._added + tonumber(sums.sum)
    given.sums[id], given.runs[id] = given.sums[id] + tonumber(sums.sum), given.runs[id] + runs
    given.longest[id] = math.max(given.longest[id], tonumber(sums.max))
  end)
  given.missed.switches = kernel:unreported()
  if is_last and self._clocks then self._clocks:finish(math.min(self._switch.off_time, self._limit)) end
end

--- Returns the account of what was added up.
---@package
---@return Figures
function CpuTimesTaker:figures()
  local doubt = self._clocks and self._clocks:difference(self._added) or nil
  return cpu_clock.figures(self._run.opt.cpus, self._ended - self._begun, self._added, self.way, doubt)
end

--- Offers the switches of a script to the kernel.
---@param instance Instance
---@param given CpuTimesSettings
function cpu_times.new(instance, given)
  local event = public_event.real(given.event)
  local self = setmetatable({ _given = given, events = { event }, spares = { public_event.real(given.moves) },
    handlers = { [event] = given.handler } }, CpuTimesTaker)
  if instance.run.in_kernel and not instance.parent then instance.run.in_kernel:offer(self) end
end

return cpu_times
