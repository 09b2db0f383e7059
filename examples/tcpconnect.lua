-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the TCP connections that are opened from here, with the time that takes.
---
---   profscript examples/tcpconnect.lua
local join = require 'lib.join'
local names = require 'lib.names'

local SYN_SENT, AF_INET = 2, 2

return {
  summary = 'Print the TCP connections that are opened',
  everywhere = true, -- packets arrive in whatever task runs then
  start = function(_, out)
    local opened = join.new { expires = '5min' }
    return {
      lost = opened.lost,
      ['sock:inet_sock_set_state/protocol == 6/'] = function(ev)
        if ev.newstate == SYN_SENT then opened:start(ev.skaddr, ev._time, ev._pid, ev._comm) end
        if ev.oldstate ~= SYN_SENT then return end
        local ns, pid, comm = opened:finish(ev.skaddr, ev._time)
        if ns then
          out:row { 'pid', pid, 'comm', comm, 'ms', ns / 1e6, 'to', names.ip(ev.family == AF_INET and ev.daddr
            or ev.daddr_v6), 'port', ev.dport, 'state', names.tcp_state(ev.newstate) }
        end
      end,
    }
  end,
}
