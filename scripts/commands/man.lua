-- SPDX-License-Identifier: GPL-2.0-only
--- Prints a manual page.
local man = require 'lib.engines.man'

return {
  summary = 'Print the manual page of a profiler or command',
  examples = {
    { 'profscript man trace | man -l -', 'show the manual page of trace' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  positional = {
    { name = 'name', required = false, help = 'profiler or command (default: profscript itself)' },
  },

  start = function(opt, out)
    local page, message = man.page(opt.name)
    if not page then return nil, (message:gsub('^profscript: ', '')) end
    out:write(page)
  end,
}
