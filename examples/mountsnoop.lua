-- SPDX-License-Identifier: GPL-2.0-only
--- Prints what is mounted and unmounted, and the results.
---
---   profscript examples/mountsnoop.lua
local names = require 'lib.names'

return {
  summary = 'Print what is mounted and unmounted',
  start = function(_, out)
    local function show(ev, call, what, where)
      out:row { 'pid', ev._pid, 'comm', ev._comm, 'call', call, 'result', ev.ret < 0 and names.errno(ev.ret) or 'ok',
        'what', what, 'where', where }
    end
    return {
      ['syscalls:sys_exit_mount'] = function(ev) show(ev, 'mount', ev:string 'dev_name', ev:string 'dir_name') end,
      ['syscalls:sys_exit_umount'] = function(ev) show(ev, 'umount', '', ev:string 'name') end,
    }
  end,
}
