-- SPDX-License-Identifier: GPL-2.0-only
--- Prints what is mounted and unmounted through the C library of x86-64, and the errors.
---
---   profscript examples/mountsnoop.lua
local names = require 'lib.names'

return {
  summary = 'Print what is mounted and unmounted',
  start = function(_, out)
    local function failed(ev)
      if ev.ret == 0 then return end
      out:row { 'pid', ev._pid, 'comm', ev._comm, 'event', ev._event, 'error', names.errno(ev.ret) }
    end
    return {
      ['uprobe:mount@libc.so.6(target=+0(%si):ustring)'] = function(ev)
        out:row { 'pid', ev._pid, 'comm', ev._comm, 'event', 'mount', 'target', ev.target }
      end,
      ['uprobe:umount2@libc.so.6(target=+0(%di):ustring)'] = function(ev)
        out:row { 'pid', ev._pid, 'comm', ev._comm, 'event', 'umount', 'target', ev.target }
      end,
      ['syscalls:sys_exit_mount'] = failed,
      ['syscalls:sys_exit_umount'] = failed,
    }
  end,
}
