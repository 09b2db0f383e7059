-- SPDX-License-Identifier: GPL-2.0-only
--- UDP datagrams by process and peer.
local datagrams = require 'lib.engines.net.datagrams'
local threads = require 'lib.threads'
local typed_events = require 'lib.engines.typed_events'

local function add(ev, seen, is_sent)
  seen:add_typed(ev, is_sent, ev.sk.__sk_common.skc_family, ev.sk.__sk_common.skc_num, ev.sk.__sk_common.skc_dport,
    ev.sk.__sk_common.skc_daddr, ev.sk.__sk_common.skc_v6_daddr.in6_u.u6_addr32[0],
    ev.sk.__sk_common.skc_v6_daddr.in6_u.u6_addr32[1], ev.sk.__sk_common.skc_v6_daddr.in6_u.u6_addr32[2],
    ev.sk.__sk_common.skc_v6_daddr.in6_u.u6_addr32[3])
end

return {
  summary = 'UDP datagrams by process and peer, with bytes and response times',
  description = [[
Prints a row for each process and peer of its sockets, those with the most bytes
first. A socket without connect() has no peer, but the port is named: its datagrams
may go to many, as those of a server do. In recordings there are neither.

  response    from the last datagram sent until the first received; of a socket that
              receives first, from the last received until the first sent]],
  examples = {
    { 'profscript udp -i 1s', 'who sends datagrams, every second' },
    { 'profscript udp -p 1', 'of a process' },
    { 'profscript udp -- getent hosts example.org', 'how long name servers take' },
  },
  everywhere = true,
  unsupported = { 'event' },
  options = {
    top = { type = 'integer', default = 20, min = 1, help = 'rows to print' },
    mmap_pages = { default = 1024 },
  },

  start = function(opt, out, session)
    local ours = threads.new(session, opt)
    local seen = datagrams.new(ours.has, opt, out, session)
    local handlers = ours.follow {
      lost = function(gap) seen:lost(gap) end,
      interval = function() seen:print() end,
      stop = function() seen:print() end,
    }
    if not typed_events.has(opt, session, 'sock:sock_send_length') then
      handlers['sock:sock_send_length/protocol == 17 && ret > 0/'] = function(ev) seen:add(ev, true, -1, 0, 0) end
      handlers['sock:sock_recv_length/protocol == 17 && ret > 0 && !(flags & 2)/'] = function(ev)
        seen:add(ev, false, -1, 0, 0)
      end
      return handlers
    end
    handlers['tp_btf:sock_send_length/sk->sk_protocol == 17 && ret > 0/'] = function(ev) add(ev, seen, true) end
    handlers['tp_btf:sock_recv_length/sk->sk_protocol == 17 && ret > 0 && !(flags & 2)/'] = function(ev)
      add(ev, seen, false)
    end
    return handlers
  end,
}
