-- SPDX-License-Identifier: GPL-2.0-only
--- --usage-self: prints the CPU time and memory of this process at an interval.
return {
  after = 'watch',
  options = {
    { group = 'run', name = 'usage_self', type = 'duration', unit = 'ms', min = 1e6,
      help = "print profscript's own CPU and memory usage at this interval", needs = { 'whole_run' } },
  },
  new = function(run) return run.opt.usage_self and require('lib.run.usage').new(run) or nil end,
}
