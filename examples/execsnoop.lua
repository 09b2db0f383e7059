-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the programs that are started, with their arguments, and by whom. Where a shell or the C library tries the
--- folders of $PATH, each attempt is printed.
---
---   profscript examples/execsnoop.lua
local callers = require('lib.join').new()

return {
  summary = 'Print the programs that are started',
  start = function(_, out)
    return {
      lost = callers.lost,
      ['syscalls:sys_enter_execve'] = function(ev) callers:start(ev._pid, ev._time, ev._comm) end,
      ['syscalls:sys_exit_execve'] = function(ev)
        local _, by = callers:finish(ev._pid, ev._time)
        out:row { 'pid', ev._pid, 'by', by or '?', 'file', ev:string 'filename', 'arguments', ev:string 'argv' }
      end,
    }
  end,
}
