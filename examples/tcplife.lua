-- SPDX-License-Identifier: GPL-2.0-only
--- Prints TCP connections when they end, with how long they were open.
---
---   profscript examples/tcplife.lua
local join = require 'lib.join'
local names = require 'lib.names'

local ESTABLISHED, CLOSE, AF_INET = 1, 7, 2

return {
  summary = 'Print TCP connections when they end',
  everywhere = true, -- packets arrive in whatever task runs then
  start = function(_, out)
    local open = join.new()
    return {
      lost = open.lost,
      ['sock:inet_sock_set_state/protocol == 6/'] = function(ev)
        if ev.newstate == ESTABLISHED then open:start(ev.skaddr, ev._time, ev._pid, ev._comm) end
        local ns, pid, comm = nil, nil, nil
        if ev.newstate == CLOSE then ns, pid, comm = open:finish(ev.skaddr, ev._time) end
        if ns then
          local is_v4 = ev.family == AF_INET
          out:row { 'pid', pid, 'comm', comm, 'from', names.ip(is_v4 and ev.saddr or ev.saddr_v6), 'sport', ev.sport,
            'to', names.ip(is_v4 and ev.daddr or ev.daddr_v6), 'dport', ev.dport, 'ms', ns / 1e6 }
        end
      end,
    }
  end,
}
