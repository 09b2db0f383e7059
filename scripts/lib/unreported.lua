-- SPDX-License-Identifier: GPL-2.0-only
--- Detection of events that the kernel did not report. Some kernels do not report events of certain
--- tasks, such as the idle task. A switch is missing if a task leaves a CPU that it did not enter, or enters one twice
--- without leaving.
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
  local function add(count, what, effect)
    if count > 0 then parts[#parts + 1] = ('%d %s (%s)'):format(count, what, effect) end
  end
  add(self.wakeups, 'wakeups', wakeups)
  add(self.switches, 'switches', switches)
  add(self.completions, 'completions', completions)
  if #parts > 0 then out:warn(('%s: the kernel did not report %s'):format(name, table.concat(parts, ' and '))) end
end

--- Counts unreported switches, for profilers that keep no state of tasks.
---@return Unreported found
---@return fun(pid: integer, time: number) leaves call this when a task leaves a CPU
---@return fun(pid: integer, time: number) enters call this when a task enters a CPU
---@return fun(gap: table) lost call this in the handler `lost`
function unreported.watch()
  local self, max = unreported.new(), threads.MAX
  -- By task: 1 + the time when it entered a CPU, or -1 - the time when it left one; 0: unknown.
  local seen, known_from = array.new(max), 1

  local function leaves(pid, time)
    if pid <= 0 or pid >= max then return end
    if seen[pid] <= -known_from then self.switches = self.switches + 1 end
    seen[pid] = -1 - time
  end
  local function enters(pid, time)
    if pid <= 0 or pid >= max then return end
    if seen[pid] >= known_from then self.switches = self.switches + 1 end
    seen[pid] = 1 + time
  end
  local function lost(gap) known_from = math.max(known_from, 1 + gap.to) end
  return self, leaves, enters, lost
end

return unreported
