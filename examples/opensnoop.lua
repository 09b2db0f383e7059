-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the files that programs open, and the results.
---
---   profscript examples/opensnoop.lua -p 1234
---   profscript examples/opensnoop.lua --failed
local names = require 'lib.names'

return {
  summary = 'Print the files that programs open',
  options = { failed = { type = 'flag', help = 'only those that cannot be opened' } },
  start = function(opt, out)
    return { ['syscalls:sys_exit_open,syscalls:sys_exit_openat,syscalls:sys_exit_openat2'] = function(ev)
      if ev.ret >= 0 and opt.failed then return end
      out:row { 'pid', ev._pid, 'comm', ev._comm, 'result', ev.ret < 0 and names.errno(ev.ret) or ev.ret,
        'file', ev:string 'filename' }
    end }
  end,
}
