-- SPDX-License-Identifier: GPL-2.0-only
--- Switches and wakeups that the kernel did not report: some kernels hide from tracers what certain tasks do, such
--- as the idle task of a CPU, which wakes and switches to others. A task that leaves a CPU without having come
--- there, or comes twice without having left, gives it away.
local array = require 'lib.array'
local threads = require 'lib.threads'

local unreported = {}

---@class Unreported
---@field switches integer
---@field wakeups integer

--- Counts of 0, for profilers that find such switches by themselves.
---@return Unreported
function unreported.new() return { switches = 0, wakeups = 0 } end

--- Warns about what was found.
---@param self Unreported
---@param out Output
---@param name string of the profiler
---@param switches string what becomes of the time before unreported switches
---@param wakeups? string and before unreported wakeups
function unreported.tell(self, out, name, switches, wakeups)
  local parts = {}
  if self.wakeups > 0 then parts[1] = ('%d wakeups (%s)'):format(self.wakeups, wakeups) end
  if self.switches > 0 then parts[#parts + 1] = ('%d switches (%s)'):format(self.switches, switches) end
  if #parts > 0 then out:warn(('%s: the kernel did not report %s'):format(name, table.concat(parts, ' and '))) end
end

--- Counts unreported switches, for profilers that see the tasks of each switch but keep no state of them.
---@param some_leave? boolean not all tasks that leave their CPU are seen
---@return Unreported found
---@return fun(pid: integer, time: number) leaves
---@return fun(pid: integer, time: number) enters
---@return fun(gap: table) lost is to be called in the handler `lost`
function unreported.watch(some_leave)
  local self, max = unreported.new(), threads.MAX
  -- By task: 1 + the time when it came to a CPU, or -1 - the time when it left one; 0: not known.
  local seen, known_from = array.new(max), 1

  local function leaves(pid, time)
    if pid <= 0 or pid >= max then return end
    if seen[pid] <= -known_from then self.switches = self.switches + 1 end
    seen[pid] = -1 - time
  end
  local function enters(pid, time)
    if pid <= 0 or pid >= max then return end
    if seen[pid] >= known_from and not some_leave then self.switches = self.switches + 1 end
    seen[pid] = 1 + time
  end
  local function lost(gap) known_from = math.max(known_from, 1 + gap.to) end
  return self, leaves, enters, lost
end

return unreported
