-- SPDX-License-Identifier: GPL-2.0-only
--- Counts events without recording them: the kernel counts, and profscript reads the counts after each period.
local grid = require 'lib.grid'
local reports = require 'lib.reports'

return {
  summary = 'Count events per interval, without recording them',
  description = [[
The kernel counts the events without recording them. With --period, a line shows
the count of each period of an interval. On a wide terminal, intervals of up to
five periods are shown as columns.

  $ profscript stat -e sched:sched_switch,raw_syscalls:sys_enter --period 100ms -i 500 --perins -N 1
  2026-11-22 10:45:08.562981
  [000]     sched:sched_switch   85|  59|  68|  40|  69 | total 321
  [000] raw_syscalls:sys_enter 3927|2650|6948|6240|5245 | total 25010
  [001]     sched:sched_switch   14|   2|  37|  52|  35 | total 140
  [001] raw_syscalls:sys_enter 4459|4628| 565|1168| 360 | total 11180]],
  examples = {
    { 'profscript stat -e sched:sched_wakeup,sched:sched_switch,raw_syscalls:sys_enter', 'events per second' },
    { 'profscript stat -e sched:sched_switch --period 100ms -i 1000 --perins', 'ten periods per line, for each CPU' },
    { "profscript stat -e 'sched:sched_wakeup/target_cpu==0/cpus=0/,sched:sched_switch//cpus=1/' --perins",
      'different CPUs for each event' },
  },
  attributes = { 'alias', 'cpus' },
  unsupported = { 'ring', 'samples' },
  options = reports.options {
    period = { type = 'duration', min = 1e6, help = 'read the counts every T; the default is the interval' },
    perins = { type = 'flag', help = 'print a line per CPU or thread' },
  },

  start = function(opt, out, session)
    local period = math.min(opt.period or opt.interval, opt.interval)
    local interval = math.max(opt.period or opt.interval, opt.interval)
    local counts = session.count(opt.event, { every = period })
    local cells = grid.new {
      name = 'stat',
      events = counts.events,
      period = period,
      interval = interval,
      by = opt.perins and counts.title or nil,
      out = out,
    }
    local current = 0
    local print_report = reports.limited(opt, session, function(settings) return cells:print(current, settings) end)

    local function add(time)
      local number = math.max(0, math.ceil(time / period - 0.001) - 1)
      local report = cells:report_of(number)
      if report > current then print_report { at = (current + 1) * interval } end
      current = report
      counts:each(function(id, event, count, share) cells:add(number, id, event, count, share) end)
      return number
    end

    return {
      interval = function(time)
        local number = add(time)
        if (number + 1) % cells.cells == 0 then
          print_report()
          current = current + 1
        end
      end,
      stop = function(time) print_report { last = add(time) } end,
    }
  end,
}
