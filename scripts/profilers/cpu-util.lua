-- SPDX-License-Identifier: GPL-2.0-only
--- Utilization of CPUs or threads.
local ratios = require 'lib.ratios'

return {
  summary = 'Measure the utilization of CPUs or threads',
  description = [[
For CPUs, measures the time that tasks ran, as the scheduler accounts it. For
threads (-p, -t or a workload), measures the CPU time of each thread and its
descendants, which can exceed 100 %. With a hardware PMU, also prints cycles,
and cycles per busy ns (GHz). The cycles are tested with synthetic counts only.

  $ profscript cpu-util -i 500 -N 1
  2026-11-22 10:45:09.783788
  [CPU]  UTIL%   BUSY(ms)
  ----- ------ ----------
  [000]  101.0    505.117
  [001]  101.8    509.062]],
  examples = {
    { 'profscript cpu-util -i 1000', 'each CPU, every second' },
    { 'profscript cpu-util -- make -j4', 'a command and its children' },
  },
  unsupported = { 'event', 'ring', 'samples', 'modes' },
  options = { interval = { default = '1s' }, exit_n = { help = 'stop after this many reports' } },

  start = function(opt, out, session)
    local has_cycles = session.supports 'cycles'
    local busy = session.per_thread and 'task-clock' or 'sched:sched_stat_runtime'
    return ratios.start({
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
        return { util = ratios.percent(n[1], ns), busy_ns = n[1], cycles = n[2], ghz = ghz }
      end,
    }, opt, out, session)
  end,
}
