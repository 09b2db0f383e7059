-- SPDX-License-Identifier: GPL-2.0-only
--- Packets that the kernel drops, TCP segments that it sends again, and resets.
local counter = require 'lib.counter'
local report = require 'lib.engines.net.drops_report'

return {
  summary = 'Packets that the kernel drops, by reason and place; retransmits and resets',
  description = [[
Prints what the kernel drops, with its reason and the function that drops it; TCP
segments that are sent again, by peer and state of the connection; and resets. All
of the machine are counted, for as long as the command runs if there is one: a
packet belongs to no task. tcp has the retransmits and resets of processes.

NOT_SPECIFIED is often no loss: the kernel frees a packet that it has used. "local"
is a packet of a Unix socket. What network cards drop is not seen.]],
  examples = {
    { 'profscript drops -i 1s', 'what is dropped, every second' },
    { 'profscript drops --each', 'each packet, when it happens' },
    { 'profscript drops -- curl -s http://localhost:1/', 'while a command runs' },
  },
  everywhere = true,
  unsupported = { 'event', 'pids', 'tids', 'cgroups', 'container' },
  optional = {
    ['tcp:tcp_retransmit_skb'] = 'there are no retransmits',
    ['tcp:tcp_receive_reset'] = 'resets that were received are missing',
    ['tcp:tcp_send_reset'] = 'resets that were sent are missing',
  },
  options = {
    each = { type = 'flag', help = 'print each packet when it happens' },
    top = { type = 'integer', default = 20, min = 1, help = 'rows to print of each table' },
  },

  start = function(opt, out, session)
    local found = report.new(opt, out, session)
    local dropped = counter.new { 'reason', 'location', 'protocol' }
    local drop, reset = session.event { 'skb:kfree_skb' }, session.event { 'tcp:tcp_send_reset' }
    found:set_names(drop)
    local has_reason = drop.fields.reason ~= nil -- since Linux 5.17
    local function count(ev)
      local reason = has_reason and ev.reason or report.NOT_KNOWN
      dropped:add(1, reason, ev.location, ev.protocol)
      if opt.each then found:print_drop(ev, reason) end
    end
    local handlers = {
      [drop] = count,
      ['tcp:tcp_retransmit_skb'] = function(ev) found:resend(ev) end,
      ['tcp:tcp_receive_reset'] = function(ev) found:received_reset(ev) end,
      interval = function() found:print(dropped) end,
      stop = function() found:print(dropped) end,
    }
    if reset then
      found:set_names(reset)
      handlers[reset] = function(ev) found:sent_reset(ev) end
    end
    return handlers
  end,
}
