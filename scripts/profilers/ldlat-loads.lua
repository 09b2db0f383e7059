-- SPDX-License-Identifier: GPL-2.0-only
--- How long loads from memory take, by where the data were.
local ldlat = require 'lib.ldlat'

return {
  summary = 'Sample loads from memory: their latency in cycles, by where the data were',
  description = [[
Needs an Intel processor: its PEBS samples one of every -T loads that take at least --ldlat cycles. Where that wants a
second event (mem-loads-aux, since Sapphire Rapids) the kernel refuses. Tested with synthetic samples and with data_src
words of other machines only, never on such a processor.]],
  examples = {
    { 'profscript ldlat-loads -i 1000', 'all CPUs, every second' },
    { 'profscript ldlat-loads --ldlat 30 --than 500 -- ./program', 'of one command, and a line for each slow one' },
  },
  unsupported = { 'event' },
  options = ldlat.options {
    ldlat = { type = 'integer', default = 3, min = 1, max = 65535, unit = 'cycles',
      help = 'only loads that take so long' },
    than = { type = 'integer', min = 0, unit = 'cycles', help = 'print each sampled load that takes longer' },
  },

  start = function(opt, out, session)
    return ldlat.start({
      name = 'ldlat-loads',
      terms = ('event=0xcd,umask=0x1,ldlat=%d'):format(opt.ldlat),
      title = 'Mem Load Latency',
    }, opt, out, session)
  end,
}
