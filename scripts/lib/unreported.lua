-- SPDX-License-Identifier: GPL-2.0-only
--- Detection of events that the kernel did not report. Some kernels do not report events of certain tasks, such as the
--- idle task. A switch is missing if a task leaves a CPU that it did not enter, or enters one that another task, or
--- itself, has not left.
local array = require 'lib.array'
local threads = require 'lib.threads'

local unreported = {}

---@class Unreported
---@field switches integer number of unreported switches
---@field wakeups integer number of unreported wakeups
---@field completions integer number of unreported completions of requests

--- Creates counters, for profilers that detect unreported events by themselves.
---@return Unreported
function unreported.new() return { switches = 0, wakeups = 0, completions = 0 } end

--- Warns about unreported events.
---@param self Unreported
---@param out Output
---@param name string name of the profiler
---@param switches? string effect of unreported switches on the report: 'their time is left out'
---@param wakeups? string effect of unreported wakeups
---@param completions? string effect of unreported completions
function unreported.warn(self, out, name, switches, wakeups, completions)
  local parts = {}
  local function add(count, one, plural, effect)
    if count > 0 then parts[#parts + 1] = ('%d %s (%s)'):format(count, count == 1 and one or one .. plural, effect) end
  end
  add(self.wakeups, 'wakeup', 's', wakeups)
  add(self.switches, 'switch', 'es', switches)
  add(self.completions, 'completion', 's', completions)
  if #parts > 0 then out:warn(('%s: the kernel did not report %s'):format(name, table.concat(parts, ' and '))) end
end

--- Returns a function that gives a thread that executes a program the state of its old id.
local function mover(seen, last_cpu, running)
  return function(ev)
    local before, pid = ev.old_pid, ev.pid
    if before >= threads.MAX or pid >= threads.MAX then return end
    seen[pid], last_cpu[pid], seen[before] = seen[before], last_cpu[before], 0
    local cpu = last_cpu[pid]
    if running[cpu] == before then running[cpu] = pid end
  end
end

--- Returns a function that forgets the state of a thread that is renamed: its switches may be seen under one name.
local function renamer(seen, last_cpu, running)
  return function(ev)
    local pid = ev._tid
    if pid <= 0 or pid >= threads.MAX then return end
    seen[pid] = 0
    if running[last_cpu[pid]] == pid then running[last_cpu[pid]] = 0 end
  end
end

--- Counts unreported switches, for profilers that keep no state of tasks. A switch from one of the tasks to another is
--- missing from both, and counts once. If the two sides of a switch are events of their own, either may come first.
---@return Unreported found
---@return fun(pid: integer, time: number, cpu: integer) leaves call this when a task leaves a CPU
---@return fun(pid: integer, time: number, cpu: integer, from?: integer) enters call this when a task enters a CPU;
--- from: the task that leaves the CPU in the same event
---@return fun(gap: table) lost call this in the handler `lost`
---@return fun(ev: Ev) moved call this in the handler of session.id_changes()
---@return fun(ev: Ev) renamed call this in the handler `comm` if the tasks are those of some names
function unreported.watch()
  local self, max, max_cpus = unreported.new(), threads.MAX, threads.MAX_CPUS
  -- By task: 1 + the time when it entered a CPU, or -1 - the time when it left one; 0: unknown. By CPU: the task that
  -- entered it last and has not left it; 0: none.
  local seen, running, known_from = array.new(max), array.new(max_cpus), 1
  local last_cpu = array.new(max) -- by task: the CPU that it entered last
  -- By CPU: the task that left it in the last event of another one that entered it, and the one that left it last.
  local left, gone = array.new(max_cpus), array.new(max_cpus)

  --- Returns whether a task other than `pid` did not leave the CPU, and forgets it.
  local function vacate(cpu, pid)
    local other = running[cpu]
    running[cpu] = 0
    if other == 0 or other == pid then return false end
    local missing = seen[other] >= known_from
    seen[other] = 0
    return missing
  end
  --- Returns whether a task did not leave another CPU.
  local function stayed(pid, cpu)
    local before = last_cpu[pid]
    if seen[pid] < known_from or before == cpu or running[before] ~= pid then return false end
    running[before] = 0
    return true
  end
  local function count(missing)
    if missing then self.switches = self.switches + 1 end
  end

  local function leaves(pid, time, cpu)
    if pid <= 0 or pid >= max or cpu < 0 or cpu >= max_cpus then return end
    local is_known = left[cpu] == pid
    left[cpu] = 0
    if is_known then return end
    local moved, was_out = stayed(pid, cpu), seen[pid] <= -known_from
    count(moved)
    count(vacate(cpu, pid) or moved or was_out)
    seen[pid], gone[cpu] = -1 - time, pid
  end
  local function enters(pid, time, cpu, from)
    if pid <= 0 or pid >= max or cpu < 0 or cpu >= max_cpus then return end
    local is_second = gone[cpu] == from
    left[cpu] = 0
    if from and from > 0 and not is_second then -- the event of the other side comes later, if at all
      if running[cpu] ~= 0 and seen[from] ~= 0 then leaves(from, time, cpu) end
      left[cpu] = from
    end
    gone[cpu] = 0
    local is_inside = running[cpu] == pid and seen[pid] >= known_from
    count(stayed(pid, cpu))
    count(vacate(cpu, pid) or is_inside)
    seen[pid], running[cpu], last_cpu[pid] = 1 + time, pid, cpu
  end
  local function lost(gap) known_from = math.max(known_from, 1 + gap.to) end
  return self, leaves, enters, lost, mover(seen, last_cpu, running), renamer(seen, last_cpu, running)
end

return unreported
