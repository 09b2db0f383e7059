-- SPDX-License-Identifier: GPL-2.0-only
--- --push and --record, or the attribute push= of an event: send events to other hosts or to a file.
return {
  new = function(run) return require('bindings.run.push').new(run) end,
}
