-- SPDX-License-Identifier: GPL-2.0-only
--- SIGUSR2: prints the state of the run.
return {
  new = function(run) return require('lib.run.usage').status(run) end,
}
