-- SPDX-License-Identifier: GPL-2.0-only
--- Cycles and instructions by CPU or thread.
local figures = require 'lib.ratios'

return {
  summary = 'Count cycles and instructions, and how many of these a cycle has',
  description = [[
Needs a hardware PMU. RUN% is how much of the time the counters were there; counts are scaled up where it is less
than 100. Its figures are tested with synthetic counts only.]],
  examples = { { 'profscript hwstat -i 1000', 'every second, each CPU' } },
  unsupported = { 'event', 'ring', 'samples' },
  options = { interval = { default = '1s' }, exit_n = { help = 'stop after this many reports' } },

  start = function(opt, out, session)
    return figures.start({
      name = 'hwstat',
      events = { 'cycles', 'instructions' },
      columns = {
        { name = 'cycles', title = 'CYCLES' },
        { name = 'instructions', title = 'INSNS' },
        { name = 'ipc', title = 'IPC', format = '%.2f' },
        { name = 'run', title = 'RUN%', format = '%.0f' },
      },
      row = function(n, share)
        return { cycles = n[1], instructions = n[2], ipc = n[1] > 0 and n[2] / n[1] or nil, run = 100 * share }
      end,
    }, opt, out, session)
  end,
}
