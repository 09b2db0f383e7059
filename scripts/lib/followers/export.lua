-- SPDX-License-Identifier: GPL-2.0-only
--- --export: writes what a run sees to a file for another program.
local formats = require 'lib.export.formats'

return {
  after = 'output',
  options = {
    { group = 'run', name = 'export', type = 'string', argument = 'FILE',
      help = 'write the events, pairs and stacks to FILE for another program, in the format of its suffix or of '
        .. 'FORMAT:FILE: ' .. table.concat(formats.names(), ', '),
      needs = { 'each_event', 'whole_run' } },
  },
  new = function(run) return run.opt.export and require('lib.export.export').new(run) or nil end,
}
