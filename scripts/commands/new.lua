-- SPDX-License-Identifier: GPL-2.0-only
--- Writes a script to start from.
local new_script = require 'lib.engines.new_script'
local stubs = require 'lib.engines.stubs'

return {
  summary = 'Write a new script for some events, to start from',
  description = [[
Writes NAME.lua, a script with an option, a handler for each event and a report
per interval, which runs at once. Its comments list the fields of the events,
with their types. A file that exists is not changed. --stubs also writes what
`profscript stubs` does, for editors, beside the script.]],
  examples = {
    { 'profscript new forks -e sched:sched_process_fork', 'write forks.lua' },
    { "profscript new io -e 'block:block_rq_issue,block:block_rq_complete'", 'write io.lua, with two handlers' },
    { 'profscript new mine -e sched:sched_switch --input perf.data', 'take the events of a recording' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = {
    events = { short = 'e', type = 'string', multiple = true, argument = 'EVENT', help = 'events of the script' },
    stubs = { type = 'flag', help = 'also write definitions for editors, see profscript stubs' },
    input = {},
  },
  positional = {
    { name = 'name', help = 'name or path of the script' },
  },

  start = function(opt, out)
    local path, message = new_script.write(opt.name, opt.events or {}, opt.input)
    if not path then return nil, message end
    if opt.stubs then
      local folder = path:match '^(.*)/' or '.'
      local done, problem = stubs.write(folder, { name = 'new', events = {}, input = opt.input })
      if not done then error(problem, 0) end
    end
    out:write(('%s is written. Run it:\n    %s\n'):format(path, new_script.command(path)))
  end,
}
