-- SPDX-License-Identifier: GPL-2.0-only
--- Counts events in periods down to 10 us. A kernel clock samples the counts on each CPU, so profscript need not
--- wake up for each period.
local grid = require 'lib.grid'
local reports = require 'lib.reports'

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
    local current = 0
    local shift, reached = {}, {} -- by CPU: periods by which its clock started late; its last complete period

    local print_report = reports.limited(opt, session, function(last)
      current = current + 1
      return cells:print(current - 1, { at = current * opt.interval, last = last })
    end)

    --- Prints the reports that all CPUs have completed.
    local function print_complete()
      local slowest = math.huge
      for row = 1, counts:rows() do slowest = math.min(slowest, reached[counts:id(row)] or 0) end
      while slowest < math.huge and cells:report_of(slowest) > current and print_report() do end
    end

    return {
      [clock] = function(ev)
        local total, passed = counts:take(ev)
        if not total then return end
        local cpu, ticks = ev._cpu, math.floor(total / period + 0.5)
        shift[cpu] = shift[cpu] or math.floor(ev._time / period + 0.5) - ticks
        -- A sample that arrives after its report was printed counts in the next one.
        local at = math.max(ticks + shift[cpu] - 1, current * cells.cells)
        if opt.verbose > 0 and passed >= 2 * period then
          out:warn(('hrcount: CPU #%d: cpu-clock: %d ns'):format(cpu, passed))
        end
        for i = 1, #counts.events do
          if counts:has(cpu, i) then cells:add(at, cpu, i, counts:delta(i)) end
        end
        local is_next_report = cells:report_of(at) > cells:report_of(reached[cpu] or 0)
        reached[cpu] = at
        if is_next_report then print_complete() end
      end,
      interval = function(time) -- do not wait for CPUs that went offline
        while current < math.floor(time / opt.interval) - 2 and print_report() do end
      end,
      stop = function()
        print_complete()
        local last = 0
        for _, at in pairs(reached) do last = math.max(last, at) end
        while cells:report_of(last) >= current and print_report(cells:report_of(last) == current and last or nil) do end
        local silent = {}
        for row = 1, counts:rows() do
          if not reached[counts:id(row)] then silent[#silent + 1] = counts:id(row) end
        end
        if #silent > 0 then
          out:warn(('hrcount: no samples from CPU %s: its counts are unknown'):format(
            table.concat(silent, ', ')))
        end
      end,
    }
  end,
}
