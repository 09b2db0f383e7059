-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the files that programs open through the C library of x86-64, and the results.
---
---   profscript examples/opensnoop.lua -p 1234
---   profscript examples/opensnoop.lua --failed
local join = require 'lib.join'

return {
  summary = 'Print the files that programs open',
  options = { failed = { type = 'flag', help = 'only those that cannot be opened' } },
  start = function(opt, out)
    local opens, failed = join.new(), opt.failed
    local function entered(ev) opens:start(ev._tid, ev._time, ev.file) end
    local function left(ev)
      local ns, file = opens:finish(ev._tid, ev._time)
      if ns and (ev.fd < 0 or not failed) then
        out:row { 'pid', ev._pid, 'comm', ev._comm, 'fd', ev.fd, 'us', ns / 1000, 'file', file }
      end
    end
    return {
      lost = opens.lost,
      ['uprobe:open64@libc.so.6(file=+0(%di):ustring)'] = entered,
      ['uprobe:openat64@libc.so.6(file=+0(%si):ustring)'] = entered,
      ['uretprobe:open64@libc.so.6(fd=$retval:s32)'] = left,
      ['uretprobe:openat64@libc.so.6(fd=$retval:s32)'] = left,
    }
  end,
}
