-- SPDX-License-Identifier: GPL-2.0-only
--- --export: writes what a run sees to a file for another program.
return {
  new = function(run) return run.opt.export and require('lib.export.export').new(run) or nil end,
}
