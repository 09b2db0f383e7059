-- SPDX-License-Identifier: GPL-2.0-only
--- What the clocks say about times on CPUs that programs have added up: all tasks together cannot have run for longer
--- than the CPUs could, nor for less than the kernel's own clocks of their processes say. These exclude processes that
--- have ended, so they are a bound. Reading one takes 0.5 us; they are read when the programs begin and end. The clocks
--- of other processes' threads are those of /proc, in 20 us each, and that of a workload is what wait4(2) says.
local attach = require 'bindings.select.attach'
local cpu_list = require 'bindings.base.cpu_list'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'

local C = ffi.C
local cpu_clock = {}

local SCHEDULED = 2 -- CPUCLOCK_SCHED: ns on CPUs, of all threads
local LAG = 20e6 -- ns: the clock of a thread that runs may be a tick behind
local SHARE = 0.98

local function cpus_of(cpus) return #cpu_list.numbers(cpus or sys.read '/sys/devices/system/cpu/present') end

--- Returns the ns that processes have run, by pid.
local function read(pids)
  local found, time = {}, ffi.new 'int64_t[2]'
  for _, pid in ipairs(pids) do
    local is_known = libc.clock_gettime(-8 * (pid + 1) + SCHEDULED, time) == 0
    found[pid] = is_known and tonumber(time[0]) * 1e9 + tonumber(time[1]) or nil
  end
  return found
end

--- Returns the ns that threads have run, by tid.
local function read_threads(tids)
  local found = {}
  for _, tid in ipairs(tids) do
    found[tid] = tonumber((sys.read(('/proc/%d/schedstat'):format(tid)) or ''):match '^%d+')
  end
  return found
end

--- Returns all processes.
local function processes()
  local list = {}
  for _, name in ipairs(sys.readdir '/proc' or {}) do list[#list + 1] = tonumber(name) end
  return list
end

--- Returns the threads that are the targets of a run.
---@param run Run after the session's start
---@return integer[]
function cpu_clock.threads(run)
  local n, list = ffi.new 'uint32_t[1]', {}
  local threads = C.session_threads(run.session, n)
  for i = 1, n[0] do list[i] = threads[i - 1] end
  return list
end

--- Returns the processes or threads that are the targets of a run, and what reads their clocks; nil: they may be parts
--- of some, or groups, which tasks enter while they run.
local function targets(run)
  local opt = run.opt
  if opt.cgroups then return end
  if opt.tids then return cpu_clock.threads(run), read_threads end
  local are_whole = (opt.pids or run.workload) and attach.inherits(opt, run.workload)
  return are_whole and (opt.pids and cpu_clock.threads(run) or {}) or nil, read
end

---@class ProcessClocks
---@field package _list? integer[] the processes or threads; nil: all
---@field package _read fun(list: integer[]): table<integer, number>
---@field package _run Run
---@field package _before table<integer, number>
local ProcessClocks = {}
ProcessClocks.__index = ProcessClocks

--- Reads the clocks of the tasks whose times programs add up from now on. Returns nil if these are not those of whole
--- processes.
---@param run Run after the session's start
---@param is_named? boolean only the threads that the run names count
---@return ProcessClocks?
function cpu_clock.begin(run, is_named)
  local list, read_clocks = nil, read
  if is_named then list, read_clocks = targets(run) end
  -- Without its tick, the clock of a CPU's thread may be a second behind.
  local is_tickless = (sys.read '/sys/devices/system/cpu/nohz_full' or ''):find '%d'
  if run.opt.cpus or is_named and not list or is_tickless then return end
  return setmetatable({ _run = run, _list = list, _read = read_clocks, _before = read_clocks(list or processes()) },
    ProcessClocks)
end

--- Returns how long the processes have run at least, by their clocks before and now.
---@param before table<integer, number>
---@param now table<integer, number>
---@param with_new boolean those that have begun meanwhile
---@return number ns
function cpu_clock.least(before, now, with_new)
  local sum = 0
  for pid, ns in pairs(now) do
    if before[pid] or with_new then sum = sum + math.max(ns - (before[pid] or 0), 0) end
  end
  return sum
end

--- Returns a line if less was added up than the clocks say; nil: it was not.
---@param added number ns
---@param least number ns
---@param unsure number ns
---@return string?
function cpu_clock.difference(added, least, unsure)
  if added >= least * SHARE - unsure then return end
  return ('at least %.0f of %.0f ns on CPUs are missing: the clocks of processes counted them'):format(least - added,
    least)
end

--- Returns how many of some threads exist.
---@param tids integer[]
---@return integer
function cpu_clock.alive(tids)
  local n = 0
  for _, tid in ipairs(tids) do n = n + (libc.access('/proc/' .. tid, 0) == 0 and 1 or 0) end
  return n
end

--- Returns a line if less was added up than threads have existed, whatever their states; nil: it was not.
---@param added number ns
---@param threads integer that existed all the time
---@param elapsed number ns
---@return string?
function cpu_clock.lifetimes(added, threads, elapsed)
  local least = threads * elapsed
  if added >= least * SHARE - LAG then return end
  return ('at least %.0f of %.0f ns of states are missing: %d threads existed for that long'):format(least - added,
    least, threads)
end

--- Reads the clocks again.
---@param ended number ns, CLOCK_MONOTONIC, when programs stopped to add
function ProcessClocks:finish(ended)
  self._least = cpu_clock.least(self._before, self._read(self._list or processes()), not self._list)
  if self._list and self._run.workload then
    local stats = ffi.new 'struct session_stats'
    C.session_read_stats(self._run.session, stats)
    self._least = self._least + tonumber(stats.workload_ns)
  end
  self._unsure = (LAG + sys.now() - ended) * cpus_of()
end

--- Returns a line if less was added up until finish(); nil: it was not.
---@param added number ns
---@return string?
function ProcessClocks:difference(added) return cpu_clock.difference(added, self._least, self._unsure) end

--- Returns the figures of times on CPUs (bindings/report/figures.lua).
---@param cpus? string list of those that are traced; nil: all
---@param elapsed number ns
---@param added number ns that were added up
---@param way string
---@param doubt? string that less was added up than the kernel counted
---@return Figures
function cpu_clock.figures(cpus, elapsed, added, way, doubt)
  return { name = 'ns on CPUs', way = way, fired = math.ceil(elapsed * cpus_of(cpus)), lost = 0, read = added, per = 1,
    by = 'the clock', doubt = doubt, rejected = {}, filters = {} }
end

return cpu_clock
