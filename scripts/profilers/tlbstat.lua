-- SPDX-License-Identifier: GPL-2.0-only
--- Data TLB lookups and misses per CPU or thread.
local ratios = require 'lib.ratios'
local reports = require 'lib.reports'

return {
  summary = 'Count data TLB loads, stores and hit rates',
  description = [[
Needs a hardware PMU. RUN% is the share of the time that the counters were
running; below 100, the counts are scaled up. Tested with synthetic counts only.]],
  examples = { { 'profscript tlbstat -i 1000', 'each CPU, every second' } },
  unsupported = { 'event', 'ring', 'samples' },
  options = reports.options {},

  start = function(opt, out, session)
    return ratios.start({
      name = 'tlbstat',
      events = { 'dTLB-loads', 'dTLB-load-misses', 'dTLB-stores', 'dTLB-store-misses' },
      columns = {
        { name = 'loads', metric = 'counter', title = 'LOADS' },
        { name = 'load_misses', metric = 'counter', title = 'MISSES' },
        { name = 'load_hit', title = 'HIT%', format = '%.2f' },
        { name = 'stores', metric = 'counter', title = 'STORES' },
        { name = 'store_misses', metric = 'counter', title = 'MISSES' },
        { name = 'store_hit', title = 'HIT%', format = '%.2f' },
        { name = 'run', title = 'RUN%', format = '%.0f' },
      },
      row = function(n, share)
        return {
          loads = n[1], load_misses = n[2], load_hit = ratios.percent(n[1] - n[2], n[1]),
          stores = n[3], store_misses = n[4], store_hit = ratios.percent(n[3] - n[4], n[3]),
          run = 100 * share,
        }
      end,
    }, opt, out, session)
  end,
}
