-- SPDX-License-Identifier: GPL-2.0-only
--- How much of the time CPUs, or threads, were busy.
local figures = require 'lib.ratios'

return {
  summary = 'Measure how much of the time CPUs or threads are busy',
  description = [[
On CPUs the time that tasks ran, as the scheduler accounts it; of threads (-p, -t, a workload) their CPU time, with
that of what they have started, which may be more than 100 %. Where there is a hardware PMU also cycles, and how
many a busy ns has. The cycles are tested with synthetic counts only.

  $ profscript cpu-util -i 500 -N 1
  2026-11-22 10:45:09.783788
  [CPU]  UTIL%   BUSY(ms)
  ----- ------ ----------
  [000]  101.0    505.117
  [001]  101.8    509.062]],
  examples = {
    { 'profscript cpu-util -i 1000', 'every second, each CPU' },
    { 'profscript cpu-util -- make -j4', 'a command and all that it starts' },
  },
  unsupported = { 'event', 'ring', 'samples', 'modes' },
  options = { interval = { default = '1s' }, exit_n = { help = 'stop after this many reports' } },

  start = function(opt, out, session)
    local has_cycles = session.supports 'cycles'
    local busy = session.per_thread and 'task-clock' or 'sched:sched_stat_runtime'
    return figures.start({
      name = 'cpu-util',
      events = has_cycles and { busy, 'cycles' } or { busy },
      columns = {
        { name = 'util', title = 'UTIL%', format = '%.1f', width = 6 },
        { name = 'busy_ns', title = 'BUSY(ms)', format = '%.3f', scale = 1e6, width = 10 },
        { name = 'cycles', title = 'CYCLES', show = has_cycles },
        { name = 'ghz', title = 'GHz', format = '%.2f', show = has_cycles },
      },
      row = function(n, _, ns)
        local ghz = n[2] and n[1] > 0 and n[2] / n[1] or nil
        return { util = figures.percent(n[1], ns), busy_ns = n[1], cycles = n[2], ghz = ghz }
      end,
    }, opt, out, session)
  end,
}
