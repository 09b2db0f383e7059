-- SPDX-License-Identifier: GPL-2.0-only
--- Cycles and instructions per CPU or thread.
local ratios = require 'lib.ratios'
local reports = require 'lib.reports'

return {
  summary = 'Count cycles, instructions and instructions per cycle',
  description = [[
Needs a hardware PMU. RUN% is the share of the time that the counters were
running; below 100, the counts are scaled up. Tested with synthetic counts only.]],
  examples = { { 'profscript hwstat -i 1000', 'each CPU, every second' } },
  unsupported = { 'event', 'ring', 'samples' },
  options = reports.options {},

  start = function(opt, out, session)
    return ratios.start({
      name = 'hwstat',
      events = { 'cycles', 'instructions' },
      columns = {
        { name = 'cycles', metric = 'counter', title = 'CYCLES' },
        { name = 'instructions', metric = 'counter', title = 'INSNS' },
        { name = 'ipc', title = 'IPC', format = '%.2f' },
        { name = 'run', title = 'RUN%', format = '%.0f' },
      },
      row = function(n, share)
        return { cycles = n[1], instructions = n[2], ipc = ratios.of(n[2], n[1]), run = 100 * share }
      end,
    }, opt, out, session)
  end,
}
