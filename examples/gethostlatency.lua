-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the names of hosts that programs look up by getaddrinfo(), and how long that takes.
---
---   profscript examples/gethostlatency.lua
local join = require 'lib.join'

return {
  summary = 'Print how long it takes to look up hosts',
  start = function(_, out)
    local calls = join.new()
    return {
      lost = calls.lost,
      ['uprobe:getaddrinfo@libc.so.6(host=+0(%di):ustring)'] = function(ev) calls:start(ev._tid, ev._time, ev.host) end,
      ['uretprobe:getaddrinfo@libc.so.6(result=$retval:s32)'] = function(ev)
        local ns, host = calls:finish(ev._tid, ev._time)
        if ns then
          out:row { 'pid', ev._pid, 'comm', ev._comm, 'ms', ns / 1e6, 'result', ev.result, 'host', host }
        end
      end,
    }
  end,
}
