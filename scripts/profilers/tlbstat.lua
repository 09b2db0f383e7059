-- SPDX-License-Identifier: GPL-2.0-only
--- Look-ups in the data TLB by CPU or thread.
local figures = require 'lib.ratios'

return {
  summary = 'Count loads and stores, and how many of them the data TLB had',
  description = [[
Needs a hardware PMU. RUN% is how much of the time the counters were there; counts are scaled up where it is less
than 100. Its figures are tested with synthetic counts only.]],
  examples = { { 'profscript tlbstat -i 1000', 'every second, each CPU' } },
  unsupported = { 'event', 'ring', 'samples' },
  options = { interval = { default = '1s' }, exit_n = { help = 'stop after this many reports' } },

  start = function(opt, out, session)
    return figures.start({
      name = 'tlbstat',
      events = { 'dTLB-loads', 'dTLB-load-misses', 'dTLB-stores', 'dTLB-store-misses' },
      columns = {
        { name = 'loads', title = 'LOADS' },
        { name = 'load_misses', title = 'MISSES' },
        { name = 'load_hit', title = 'HIT%', format = '%.2f' },
        { name = 'stores', title = 'STORES' },
        { name = 'store_misses', title = 'MISSES' },
        { name = 'store_hit', title = 'HIT%', format = '%.2f' },
        { name = 'run', title = 'RUN%', format = '%.0f' },
      },
      row = function(n, share)
        return {
          loads = n[1], load_misses = n[2], load_hit = figures.percent(n[1] - n[2], n[1]),
          stores = n[3], store_misses = n[4], store_hit = figures.percent(n[3] - n[4], n[3]),
          run = 100 * share,
        }
      end,
    }, opt, out, session)
  end,
}
