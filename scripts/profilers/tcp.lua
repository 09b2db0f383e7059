-- SPDX-License-Identifier: GPL-2.0-only
--- TCP connections by process and peer: how many, how long, bytes, latencies, retransmits and resets.
local accept_queues = require 'lib.engines.net.accept_queues'
local connections = require 'lib.engines.net.connections'
local report = require 'lib.engines.net.tcp_report'
local threads = require 'lib.threads'
local transfers = require 'lib.engines.net.transfers'

local function set_ends(ev, live, at)
  live:set_before(at, ev.sk.__sk_common.skc_family, ev.sk.__sk_common.skc_num, ev.sk.__sk_common.skc_dport,
    ev.sk.__sk_common.skc_daddr, ev.sk.__sk_common.skc_v6_daddr.in6_u.u6_addr32[0],
    ev.sk.__sk_common.skc_v6_daddr.in6_u.u6_addr32[1], ev.sk.__sk_common.skc_v6_daddr.in6_u.u6_addr32[2],
    ev.sk.__sk_common.skc_v6_daddr.in6_u.u6_addr32[3])
end

local function peer_of(ev) return ev:user('u64', 'upeer_sockaddr') end

local function read_queue(ev, queues)
  queues:add(ev.sk.__sk_common.skc_num, ev.sk.sk_ack_backlog, ev.sk.sk_max_ack_backlog)
end

return {
  summary = 'TCP connections by process and peer, with bytes, latencies and retransmits',
  description = [[
Prints a row for each process and peer, those with the most bytes first. With a port
of its own, a row is about connections that were accepted there, and the peer is the
address that they came from; else the process has opened them, to the port behind
the address.

  connect     from connect() until the connection is open, on average and at most;
              of accepted connections from then until accept() returns them
  response    from the last data sent until the first received; of accepted
              connections from the last data received until the first sent
  longest     the longest connection that has ended

A connection belongs to the process that has accepted it; if that did not ask for the
address of the peer, and in recordings, to the first one that sends, receives or
closes. One that was open before the run counts as accepted if a socket listens on
its port. Bytes are those that programs send and receive, without retransmits;
splice() from a socket is not seen.

A recording needs sock:inet_sock_set_state, and for the other columns
sock:sock_send_length, sock:sock_recv_length and the events that --dry-run prints.
It does not have the peers of connections that were open before.]],
  examples = {
    { 'profscript tcp -i 1s', 'who talks to whom, every second' },
    { 'profscript tcp --than 0', 'each connection when it ends' },
    { 'profscript tcp --connects 100ms -p 1', 'slow connects of a process' },
    { 'profscript tcp --states -- curl -s http://localhost/', 'how long connections are in which state' },
  },
  everywhere = true, -- packets arrive in whatever task runs then
  unsupported = { 'event' },
  optional = {
    ['sock:sock_send_length'] = 'nothing is sent',
    ['sock:sock_recv_length'] = 'nothing is received',
    ['tcp:tcp_retransmit_skb'] = 'there are no retransmits',
    ['tcp:tcp_receive_reset'] = 'resets that were received are missing',
    ['tcp:tcp_send_reset'] = 'resets that were sent are missing',
    ['tcp:tcp_destroy_sock'] = 'what is received after both ends have closed is missing',
  },
  options = {
    than = { type = 'duration', help = 'also print connections longer than T when they end' },
    connects = { type = 'duration', help = 'also print each connect longer than T' },
    states = { type = 'flag', help = 'also print how long connections that have ended were in which state' },
    queues = { type = 'flag', help = 'also print how long the accept queues of all sockets are' },
    top = { type = 'integer', default = 20, min = 1, help = 'rows to print' },
    mmap_pages = { default = 1024 },
  },

  start = function(opt, out, session)
    local ours = threads.new(session, opt)
    local live = connections.new(ours.has)
    local sums = report.new(opt, out, session, live)
    live.sees_ends = session.supports 'tcp:tcp_destroy_sock'
    local handlers = ours.follow {
      ['sock:inet_sock_set_state/protocol == 6/'] = function(ev) live:state(ev) end,
      ['tcp:tcp_retransmit_skb'] = function(ev) live:retransmitted(ev) end,
      ['tcp:tcp_receive_reset'] = function(ev) live:reset(ev) end,
      ['tcp:tcp_send_reset'] = function(ev) live:reset(ev) end,
      ['tcp:tcp_destroy_sock'] = function(ev) live:destroyed(ev) end,
      lost = function(gap) live:lost(gap) end,
    }
    local queues = opt.queues and accept_queues.follow(handlers, session, opt, out, read_queue)
    function handlers.interval()
      sums:print()
      if queues then queues:print(opt.top) end
    end
    handlers.stop = handlers.interval
    transfers.follow(handlers, session, opt, out, live, { set_ends = set_ends, peer_of = peer_of })
    return handlers
  end,
}
