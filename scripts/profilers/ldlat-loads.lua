-- SPDX-License-Identifier: GPL-2.0-only
--- Load latency by data source.
local ldlat = require 'lib.engines.ldlat'

return {
  summary = 'Sample memory loads: latency in cycles, by data source',
  description = [[
Needs an Intel processor: its PEBS samples one in every -T loads that take at
least --ldlat cycles. Processors that need a second event (mem-loads-aux, since
Sapphire Rapids) are not supported: the kernel rejects the event. Tested with
synthetic samples and with data_src values of other machines only, never on such
a processor.]],
  examples = {
    { 'profscript ldlat-loads -i 1000', 'all CPUs, every second' },
    { 'profscript ldlat-loads --ldlat 30 --than 500 -- ./program', 'loads of a command, and a line for each slow one' },
  },
  unsupported = { 'event', 'input' },
  options = ldlat.options {
    ldlat = { type = 'integer', default = 3, min = 1, max = 65535, unit = 'cycles',
      help = 'sample only loads with at least this latency' },
  },

  start = function(opt, out, session)
    return ldlat.start({
      name = 'ldlat-loads',
      terms = ('event=0xcd,umask=0x1,ldlat=%d'):format(opt.ldlat),
      title = 'Mem Load Latency',
    }, opt, out, session)
  end,
}
