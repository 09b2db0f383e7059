-- SPDX-License-Identifier: GPL-2.0-only
--- Counts events in periods down to 10 us: a clock of the kernel samples the counts on each CPU, nobody
--- wakes up for it.
local grid = require 'lib.grid'

return {
  summary = 'Count events in periods of microseconds, on CPUs',
  description = [[
A high-resolution clock samples the counts on each CPU; a line shows the periods of one interval. A period that
the clock missed (it was throttled, or interrupts were off) is 0 and its counts are in the next one; -v tells it.

  $ profscript hrcount -e sched:sched_switch,raw_syscalls:sys_enter --period 1ms -i 10 --perins -N 1
  2026-11-22 10:45:08.804743
  [000]     sched:sched_switch   0|  0| 10|169|169|163|166|168|171|170 | total 1186
  [000] raw_syscalls:sys_enter   6|  5| 20|338|340|324|329|335|342|340 | total 2379
  [001]     sched:sched_switch   1|  0|  2|  0|  0|  0|  1|  0|  0|  0 | total 4
  [001] raw_syscalls:sys_enter  40| 54| 28|105| 38|  0|  4| 39| 57| 48 | total 413]],
  examples = {
    { 'profscript hrcount -e sched:sched_switch --period 1ms -i 10 -C 0 -N 3', 'ten milliseconds of CPU 0, by 1 ms' },
    { 'profscript hrcount -e raw_syscalls:sys_enter,irq:softirq_entry --period 50us -i 1 --perins', 'twenty periods' },
  },
  attributes = { 'alias', 'cpus' },
  unsupported = { 'samples', 'modes', 'threads', 'input' }, -- what is sampled is its clock
  options = {
    interval = { default = '1s' },
    exit_n = { help = 'stop after this many reports' },
    perfeval_cpus = {},
    sampling_limit = {},
    period = { type = 'duration', min = 1e4, help = 'sample the counts so often; the default is the interval' },
    perins = { type = 'flag', help = 'a line for each CPU' },
  },

  start = function(opt, out, session)
    if #opt.event == 0 then return nil, 'no events: name some with -e, such as -e sched:sched_switch' end
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
    local current, left = 0, opt.exit_n or math.huge
    local shift, reached = {}, {} -- by CPU: periods that its clock began late; the last period it has left

    local function print_report(last)
      if left == 0 then return end
      if cells:print(current, { at = (current + 1) * opt.interval, last = last }) then left = left - 1 end
      current = current + 1
      if left == 0 then session.stop() end
    end

    --- Prints what all CPUs have left behind.
    local function print_complete()
      local least = math.huge
      for row = 1, counts:rows() do least = math.min(least, reached[counts:id(row)] or 0) end
      while least < math.huge and cells:report_of(least) > current and left > 0 do print_report() end
    end

    return {
      [clock] = function(ev)
        local total, passed = counts:take(ev)
        if not total or left == 0 then return end
        local cpu, ticks = ev._cpu, math.floor(total / period + 0.5)
        shift[cpu] = shift[cpu] or math.floor(ev._time / period + 0.5) - ticks
        -- What comes after its report is counted in the next one.
        local at = math.max(ticks + shift[cpu] - 1, current * cells.cells)
        if opt.verbose > 0 and passed >= 2 * period then
          out:warn(('hrcount: CPU #%d: cpu-clock: %d ns'):format(cpu, passed))
        end
        for i = 1, #counts.events do
          if counts:has(cpu, i) then cells:add(at, cpu, i, counts:delta(i)) end
        end
        local new = cells:report_of(at) > cells:report_of(reached[cpu] or 0)
        reached[cpu] = at
        if new then print_complete() end
      end,
      interval = function(time) -- a CPU that has gone is not waited for
        while current < math.floor(time / opt.interval) - 2 and left > 0 do print_report() end
      end,
      stop = function()
        print_complete()
        local last = 0
        for _, at in pairs(reached) do last = math.max(last, at) end
        while cells:report_of(last) >= current and left > 0 do
          print_report(cells:report_of(last) == current and last or nil)
        end
        local silent = {}
        for row = 1, counts:rows() do
          if not reached[counts:id(row)] then silent[#silent + 1] = counts:id(row) end
        end
        if #silent > 0 then
          out:warn(('hrcount: the clock gave no period of CPU %s: what they counted is not known'):format(
            table.concat(silent, ', ')))
        end
      end,
    }
  end,
}
