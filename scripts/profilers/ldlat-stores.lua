-- SPDX-License-Identifier: GPL-2.0-only
--- Stores by data source.
local ldlat = require 'lib.engines.ldlat'

return {
  summary = 'Sample memory stores by data source',
  description = [[
Needs an Intel processor: its PEBS samples one in every -T stores. Before Alder
Lake and Sapphire Rapids it does not measure store latency, and the cycles are
0. Tested with synthetic samples only, never on such a processor.]],
  examples = { { 'profscript ldlat-stores -i 1000', 'all CPUs, every second' } },
  unsupported = { 'event', 'input' },
  options = ldlat.options {},

  start = function(opt, out, session)
    return ldlat.start({
      name = 'ldlat-stores',
      terms = 'event=0xd0,umask=0x82',
      title = 'Mem Store Latency',
    }, opt, out, session)
  end,
}
