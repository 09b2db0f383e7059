-- SPDX-License-Identifier: GPL-2.0-only
--- Who ran on each CPU lately: the last runs of each, in a ring, and the sums of the time since the last report.
---
--- A run begins at the switch to its task. If the CPU is then left by another task, switches are missing: the time
--- between them is a hole, in which nobody is known to have run.
local array = require 'lib.array'
local sched_switch = require 'bindings.expr.sched_switch'

local cpu_runs = { HOLE = -1 } -- in place of a task

local RUNS = 2 ^ 13 -- of a CPU
local HOLE = cpu_runs.HOLE

--- One CPU.
---@class CpuRuns
---@field tid integer that runs; HOLE, or -2 before the first switch
---@field since number ns: when its run began
---@field n integer runs so far; that of number i is in element i % RUNS of the arrays
---@field tids Array
---@field begins Array
---@field counted number ns: until when the sums are complete
---@field busy number ns: sum of the runs of tasks
---@field hole number ns
---@field waiting integer tasks that wait for this CPU
---@field changed number ns: since when so many wait
---@field waited number ns: sum of their times
---@field most integer
---@field claimable number ns: All.behind when the CPU became idle
---@field unclaimed number ns that it was idle while tasks waited for others

---@class AllCpuRuns
---@field holes integer so far
---@field queued integer tasks that wait for CPUs that are not idle
---@field behind number ns for which any did
---@field list CpuRuns[] in the order of their first switches
local All = {}
All.__index = All

---@return AllCpuRuns
function cpu_runs.new()
  return setmetatable({ holes = 0, queued = 0, behind = 0, list = {}, _by_cpu = {}, _at = 0 }, All)
end

--- Returns a CPU.
---@param number integer
---@param time number
---@return CpuRuns
function All:of(number, time)
  local found = self._by_cpu[number]
  if found then return found end
  found = { cpu = number, tid = -2, since = time, n = 0, tids = array.new(RUNS), begins = array.new(RUNS),
    counted = time, busy = 0, hole = 0, waiting = 0, changed = time, waited = 0, most = 0, first = time,
    claimable = 0, unclaimed = 0 }
  self._by_cpu[number] = found
  self.list[#self.list + 1] = found
  return found
end

--- Adds the time until now to the sums.
local function count(cpu, time)
  local ns = time - cpu.counted
  if cpu.tid > 0 then cpu.busy = cpu.busy + ns elseif cpu.tid == HOLE then cpu.hole = cpu.hole + ns end
  cpu.counted = time
end

--- Other numbers of tasks wait for CPUs that are not idle from now on.
local function queue(self, by, time)
  if self.queued > 0 then self.behind = self.behind + time - self._at end
  self.queued, self._at = self.queued + by, time
end

--- Notes the beginning or the end of a time in which the CPU is idle.
local function idle(self, cpu, prev, next_tid, time)
  local ends, begins = cpu.tid == 0, next_tid == 0
  if ends == begins then return end
  queue(self, begins and -cpu.waiting or cpu.waiting, time)
  if begins then
    cpu.claimable = self.behind
  elseif prev == 0 then
    cpu.unclaimed = cpu.unclaimed + self.behind - cpu.claimable
  end
end

local function push(cpu, tid, time)
  local at = cpu.n % RUNS
  cpu.tids[at], cpu.begins[at] = tid, time
  cpu.n, cpu.tid, cpu.since = cpu.n + 1, tid, time
end

--- A CPU switches from a task to another one.
---@param cpu CpuRuns
---@param prev integer
---@param next_tid integer
---@param time number
---@return number? began when the run of `prev` began; nil: that is not known
function All:switch(cpu, prev, next_tid, time)
  local began = cpu.since
  idle(self, cpu, prev, next_tid, time)
  if cpu.tid ~= prev then
    if sched_switch.is_missing(cpu.tid >= 0 and cpu.tid or nil, prev) then
      cpu.tid, cpu.tids[(cpu.n - 1) % RUNS] = HOLE, HOLE
      self.holes = self.holes + 1
    end
    began = nil
  end
  count(cpu, time)
  push(cpu, next_tid, time)
  return began
end

--- The events of a CPU, or of all of them, are lost from now on.
---@param number? integer
---@param time number
function All:lose(number, time)
  for _, cpu in ipairs(self.list) do
    if (not number or cpu.cpu == number) and cpu.tid ~= HOLE and time >= cpu.since then
      idle(self, cpu, HOLE, HOLE, time)
      count(cpu, math.max(time, cpu.counted))
      push(cpu, HOLE, time)
    end
  end
end

--- One task more or less waits for a CPU.
---@param cpu CpuRuns
---@param by integer
---@param time number
function All:wait(cpu, by, time)
  if cpu.tid ~= 0 then queue(self, by, time) end
  local n = cpu.waiting
  cpu.waited, cpu.changed = cpu.waited + n * (time - cpu.changed), time
  n = n + by
  cpu.waiting = n
  if n > cpu.most then cpu.most = n end
end

--- Nobody is known to wait any more.
---@param time number
function All:clear_waits(time)
  for _, cpu in ipairs(self.list) do self:wait(cpu, -cpu.waiting, time) end
end

--- Calls a function with each run on a CPU in a time, and with HOLE for what is no longer or was never known.
---@param cpu CpuRuns
---@param from number
---@param to number not after the last switch
---@param each fun(tid: integer, ns: number)
function cpu_runs.between(cpu, from, to, each)
  local ends, tids, begun = to, cpu.tids, cpu.begins
  for i = cpu.n - 1, math.max(0, cpu.n - RUNS), -1 do
    local begins = begun[i % RUNS]
    if begins < ends then
      each(tids[i % RUNS], ends - math.max(begins, from))
      ends = begins
      if ends <= from then return end
    end
  end
  if ends > from then each(HOLE, ends - from) end
end

--- Calls a function with each CPU and the time since the last report, and begins the next one.
---@param time number
---@param each fun(cpu: CpuRuns, ns: number)
function All:report(time, each)
  local order = {}
  for i, cpu in ipairs(self.list) do order[i] = cpu end
  table.sort(order, function(a, b) return a.cpu < b.cpu end)
  for _, cpu in ipairs(order) do
    count(cpu, math.max(time, cpu.counted))
    self:wait(cpu, 0, math.max(time, cpu.changed))
    if cpu.tid == 0 then
      queue(self, 0, math.max(time, self._at))
      cpu.unclaimed, cpu.claimable = cpu.unclaimed + self.behind - cpu.claimable, self.behind
    end
    if time > cpu.first then each(cpu, time - cpu.first) end
    cpu.busy, cpu.hole, cpu.waited, cpu.most, cpu.first, cpu.unclaimed = 0, 0, 0, cpu.waiting, time, 0
  end
end

return cpu_runs
