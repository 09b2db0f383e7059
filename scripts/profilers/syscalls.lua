-- SPDX-License-Identifier: GPL-2.0-only
--- System call latency and errors.
local relation = require 'lib.relation'
local syscalls = require 'lib.syscalls'

local options = relation.pick('than', 'only_than', 'lower', 'perins', 'variance', 'heatmap')
options.event = { default = { 'raw_syscalls:sys_enter', 'raw_syscalls:sys_exit' } }

return {
  summary = 'System call latency and errors',
  description = [[
Prints a row for each system call; with --perins, for each system call of each
thread. err is the number of calls that returned an error; a call that a signal
interrupts and that begins again has none. A call that does not
return, such as exit_group, lasts until its task exits. -e can add filters; both
events must select the same calls.

Calls of i386, as 32-bit programs and int $0x80 make them, are rows of their
own: i386:getpid(20). A recording, and live events that perf samples, do not
have this difference; a line says so if there are such calls.]],
  examples = {
    { 'profscript syscalls -i 1000', 'all tasks, every second' },
    { 'profscript syscalls --perins --than 100ms -p 1',
      'each thread of a process, with each call of more than 100 ms' },
    { 'profscript syscalls -- ls -R /usr/share', 'system calls of a command' },
    { [[profscript syscalls -e 'raw_syscalls:sys_enter/id==read/' -e 'raw_syscalls:sys_exit/id==read/' -i 1000]],
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
