-- SPDX-License-Identifier: GPL-2.0-only
--- Lists the events of this machine.
local catalog = require 'lib.engines.catalog'
local glob = require 'lib.glob'
local tables = require 'lib.table'

return {
  summary = 'List the events that can be traced here',
  description = [=[
PATTERN is a part of the name, or a glob such as sched:*wak* that matches the whole name. Tracepoints are
printed without a kind, other events are followed by their kind. Tracepoints with typed arguments and functions
of the kernel are listed if PATTERN begins with tp_btf:, fentry:, fexit:, kprobe: or kretprobe:.

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
    { "profscript list 'fentry:vfs_*'", 'list functions of the kernel' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = { output = {}, format = {} },
  positional = {
    { name = 'pattern', required = false, help = 'list only matching events' },
  },

  start = function(opt, out)
    local pattern = opt.pattern or ''
    local found = catalog.typed(pattern)
    local has_kinds = not found
    if has_kinds then
      local all, message = catalog.entries()
      local wanted = glob.matcher(pattern)
      found = {}
      if message then out:warn(message) end
      for _, entry in ipairs(all) do
        if wanted(entry.name) then found[#found + 1] = entry end
      end
    end
    if #found == 0 then
      local hint = pattern:find ':' and '' or "; functions of the kernel are listed by 'fentry:%s'"
      error(("no event matches '%s'" .. hint):format(pattern, pattern), 0)
    end
    if out.format ~= 'text' then
      out:table(tables.new('events', { { name = 'name' }, { name = 'kind' } }), found)
    end
    for _, entry in ipairs(found) do -- the lines of tracepoints are plain names, for use by other programs
      local is_plain = not has_kinds or entry.kind == 'tracepoint'
      out:write(is_plain and entry.name .. '\n' or ('%-40s [%s]\n'):format(entry.name, entry.kind))
    end
  end,
}
