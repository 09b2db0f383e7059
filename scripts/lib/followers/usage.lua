-- SPDX-License-Identifier: GPL-2.0-only
--- --usage-self: prints the CPU time and memory of this process at an interval.
return {
  new = function(run) return run.opt.usage_self and require('bindings.run.usage').new(run) or nil end,
}
