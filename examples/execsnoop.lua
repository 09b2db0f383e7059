-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the programs that are started, with their arguments, and by whom. Where a shell or the C library tries the
--- folders of $PATH, each attempt is printed.
---
---   profscript examples/execsnoop.lua
return {
  summary = 'Print the programs that are started',
  start = function(_, out)
    return { ['syscalls:sys_enter_execve'] = function(ev)
      out:row { 'pid', ev._pid, 'by', ev._comm, 'file', ev:string 'filename', 'arguments', ev:string 'argv' }
    end }
  end,
}
