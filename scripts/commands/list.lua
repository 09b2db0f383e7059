-- SPDX-License-Identifier: GPL-2.0-only
--- Lists the events of this machine.
local catalog = require 'lib.engines.catalog'
local glob = require 'lib.glob'
local tables = require 'lib.table'

return {
  summary = 'List the events that can be traced here',
  description = [=[
PATTERN is a part of the name, or a glob such as sched:*wak* that matches the whole name. Tracepoints are
printed without a kind, other events are followed by their kind.

  $ profscript list faults
  alignment-faults                         [software event]
  emulation-faults                         [software event]
  faults                                   [software event]
  major-faults                             [software event]
  minor-faults                             [software event]
  page-faults                              [software event]]=],
  examples = {
    { 'profscript list sched_wak', 'list the events with sched_wak in their names' },
    { "profscript list 'block:*'", 'list all events of a subsystem' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = { output = {}, format = {} },
  positional = {
    { name = 'pattern', required = false, help = 'list only matching events' },
  },

  start = function(opt, out)
    local all, message = catalog.entries()
    local wanted, found = glob.matcher(opt.pattern or ''), {}
    if message then out:warn(message) end
    for _, entry in ipairs(all) do
      if wanted(entry.name) then found[#found + 1] = entry end
    end
    if #found == 0 then error(("no event matches '%s'"):format(opt.pattern or '*'), 0) end
    if out.format ~= 'text' then
      out:table(tables.new('events', { { name = 'name' }, { name = 'kind' } }), found)
    end
    for _, entry in ipairs(found) do -- the lines of tracepoints are plain names, for use by other programs
      out:write(entry.kind == 'tracepoint' and entry.name .. '\n' or ('%-40s [%s]\n'):format(entry.name, entry.kind))
    end
  end,
}
