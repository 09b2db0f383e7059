-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the files that programs look at, and the results.
---
---   profscript examples/statsnoop.lua
local names = require 'lib.names'

return {
  summary = 'Print the files that programs look at',
  start = function(_, out)
    local function look(ev, file)
      if file == '' then return end -- an open file
      out:row { 'pid', ev._pid, 'comm', ev._comm, 'result', ev.ret < 0 and names.errno(ev.ret) or 'ok', 'file', file }
    end
    local function with_filename(ev) look(ev, ev:string 'filename') end
    return {
      ['syscalls:sys_exit_newstat,syscalls:sys_exit_newlstat'] = with_filename,
      ['syscalls:sys_exit_newfstatat,syscalls:sys_exit_statx'] = with_filename,
      ['syscalls:sys_exit_statfs'] = function(ev) look(ev, ev:string 'pathname') end,
    }
  end,
}
