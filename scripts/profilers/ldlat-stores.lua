-- SPDX-License-Identifier: GPL-2.0-only
--- Stores to memory, by where they went.
local ldlat = require 'lib.ldlat'

return {
  summary = 'Sample stores to memory, by where they went',
  description = [[
Needs an Intel processor: its PEBS samples one of every -T stores. Before Alder Lake and Sapphire Rapids it measures no
latency of stores, and the cycles are 0. Tested with synthetic samples only, never on such a processor.]],
  examples = { { 'profscript ldlat-stores -i 1000', 'all CPUs, every second' } },
  unsupported = { 'event' },
  options = ldlat.options {},

  start = function(opt, out, session)
    return ldlat.start({
      name = 'ldlat-stores',
      terms = 'event=0xd0,umask=0x82',
      title = 'Mem Store Latency',
    }, opt, out, session)
  end,
}
