-- SPDX-License-Identifier: GPL-2.0-only
--- Counts events in periods down to 10 us. A kernel clock samples the counts on each CPU, so profscript need not
--- wake up for each period.
local grid = require 'lib.grid'
local reports = require 'lib.reports'

--- The reports of a run, and how far the clock of each CPU has come.
---@class Progress
local Progress = {}
Progress.__index = Progress

local function new_progress(counts, cells, opt, session)
  -- By CPU: periods by which its clock started late; its last complete period.
  local self = setmetatable({ counts = counts, cells = cells, current = 0, shift = {}, reached = {} }, Progress)
  self.print = reports.limited(opt, session, function(last)
    self.current = self.current + 1
    return cells:print(self.current - 1, { at = self.current * opt.interval, last = last })
  end)
  return self
end

--- Prints the reports that all CPUs have completed.
function Progress:print_complete()
  local slowest, counts = math.huge, self.counts
  for row = 1, counts:rows() do slowest = math.min(slowest, self.reached[counts:id(row)] or 0) end
  while slowest < math.huge and self.cells:report_of(slowest) > self.current and self.print() do end
end

--- Returns the period that a sample ends.
function Progress:period_of(ev, total, period)
  local cpu, ticks = ev._cpu, math.floor(total / period + 0.5)
  self.shift[cpu] = self.shift[cpu] or math.floor(ev._time / period + 0.5) - ticks
  -- A sample that arrives after its report was printed counts in the next one.
  return math.max(ticks + self.shift[cpu] - 1, self.current * self.cells.cells)
end

--- Sets the last complete period of a CPU.
function Progress:set(cpu, at)
  local is_next_report = self.cells:report_of(at) > self.cells:report_of(self.reached[cpu] or 0)
  self.reached[cpu] = at
  if is_next_report then self:print_complete() end
end

--- Prints what is left at the end of the run.
function Progress:finish(out)
  self:print_complete()
  local last, cells, counts = 0, self.cells, self.counts
  for _, at in pairs(self.reached) do last = math.max(last, at) end
  while cells:report_of(last) >= self.current
    and self.print(cells:report_of(last) == self.current and last or nil) do end
  local silent = {}
  for row = 1, counts:rows() do
    if not self.reached[counts:id(row)] then silent[#silent + 1] = counts:id(row) end
  end
  if #silent > 0 then
    out:warn(('hrcount: no samples from CPU %s: its counts are unknown'):format(table.concat(silent, ', ')))
  end
end

return {
  summary = 'Count events per CPU in periods of microseconds',
  description = [[
A high-resolution clock samples the counts on each CPU. A line shows the periods
of one interval. If the clock misses a period, because it was throttled or
interrupts were off, that period is 0 and its counts are in the next one; -v
reports it.

  $ profscript hrcount -e sched:sched_switch,raw_syscalls:sys_enter --period 1ms -i 10 --perins -N 1
  2026-11-22 10:45:08.804743
  [000]     sched:sched_switch   0|  0| 10|169|169|163|166|168|171|170 | total 1186
  [000] raw_syscalls:sys_enter   6|  5| 20|338|340|324|329|335|342|340 | total 2379
  [001]     sched:sched_switch   1|  0|  2|  0|  0|  0|  1|  0|  0|  0 | total 4
  [001] raw_syscalls:sys_enter  40| 54| 28|105| 38|  0|  4| 39| 57| 48 | total 413]],
  examples = {
    { 'profscript hrcount -e sched:sched_switch --period 1ms -i 10 -C 0 -N 3', 'ten periods of 1 ms, on CPU 0' },
    { 'profscript hrcount -e raw_syscalls:sys_enter,irq:softirq_entry --period 50us -i 1 --perins',
      'twenty periods of 50 us per line' },
  },
  attributes = { 'alias', 'cpus' },
  unsupported = { 'samples', 'modes', 'threads', 'input' }, -- only the clock is sampled
  options = reports.options {
    perfeval_cpus = {},
    sampling_limit = {},
    period = { type = 'duration', min = 1e4, help = 'sample the counts every T; the default is the interval' },
    perins = { type = 'flag', help = 'print a line per CPU' },
  },

  start = function(opt, out, session)
    if #opt.event == 0 then return nil, 'no events; select some with -e, such as -e sched:sched_switch' end
    local period = math.min(opt.period or opt.interval, opt.interval)
    local clock = session.event { 'cpu-clock', period = period, sample = { 'read' } }
    local counts = session.count(opt.event, { by = clock })
    local cells = grid.new {
      name = 'hrcount',
      events = counts.events,
      period = period,
      interval = opt.interval,
      by = opt.perins and 'CPU' or nil,
      out = out,
    }
    local progress = new_progress(counts, cells, opt, session)

    return {
      [clock] = function(ev)
        local total, passed = counts:take(ev)
        if not total then return end
        local cpu, at = ev._cpu, progress:period_of(ev, total, period)
        if opt.verbose > 0 and passed >= 2 * period then
          out:warn(('hrcount: CPU #%d: cpu-clock: %d ns'):format(cpu, passed))
        end
        for i = 1, #counts.events do
          if counts:has(cpu, i) then cells:add(at, cpu, i, counts:delta(i)) end
        end
        progress:set(cpu, at)
      end,
      interval = function(time) -- do not wait for CPUs that went offline
        while progress.current < math.floor(time / opt.interval) - 2 and progress.print() do end
      end,
      stop = function() progress:finish(out) end,
    }
  end,
}
