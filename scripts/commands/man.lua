-- SPDX-License-Identifier: GPL-2.0-only
--- Prints a manual page.
local man = require 'lib.man'

return {
  summary = 'Print a manual page, made from the same declarations as the help',
  examples = {
    { 'profscript man trace | man -l -', 'read the page of trace' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  positional = {
    { name = 'name', required = false, help = 'a profiler; without it the page of profscript itself' },
  },

  start = function(opt, out)
    local page, message = man.page(opt.name)
    if not page then error(message, 0) end
    out:write(page)
  end,
}
