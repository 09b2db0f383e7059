-- SPDX-License-Identifier: GPL-2.0-only
--- How long system calls take, and how often they fail.
local relation = require 'lib.relation'
local syscalls = require 'lib.syscalls'

local options = relation.pick('than', 'only_than', 'lower', 'perins', 'heatmap')
options.event = { default = { 'raw_syscalls:sys_enter', 'raw_syscalls:sys_exit' } }

return {
  summary = 'System calls: time and errors',
  description = [[
A row for each system call, with --perins for each of each thread. err counts the calls that returned
an error. A call that does not return, such as exit_group, lasts until its task's end. The events may
be given with filters: both must let the same calls through.]],
  examples = {
    { 'profscript syscalls -i 1000', 'of all tasks, every second' },
    { 'profscript syscalls --perins --than 100ms -p 1',
      'of each thread of a process; those of more than 100 ms are printed' },
    { 'profscript syscalls -- ls -R /usr/share', 'of a command' },
    { [[profscript syscalls -e 'raw_syscalls:sys_enter/id==0/' -e 'raw_syscalls:sys_exit/id==0/' -i 1000]],
      'only read(2)' },
  },
  attributes = { 'key', 'trigger', 'untraced' },
  options = options,

  start = function(opt, out, session)
    local found, message = relation.events(opt)
    if not found then return nil, message end
    return syscalls.run { name = 'syscalls', opt = opt, out = out, session = session, events = found }
  end,
}
