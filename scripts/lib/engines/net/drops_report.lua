-- SPDX-License-Identifier: GPL-2.0-only
--- The report of drops: packets that are dropped, segments that are sent again, and resets.
local addresses = require 'lib.engines.net.addresses'
local counter = require 'lib.counter'
local event_names = require 'lib.sql.names'
local names = require 'lib.names'
local public_event = require 'bindings.view.public_event'
local rows = require 'lib.engines.rows'
local tables = require 'lib.table'

local report = {}

local AF_INET = 2
local NOBODY = -1
--- The reason of what the kernel gives no reason for.
report.NOT_KNOWN = -2
local PROTOCOLS = { [0] = 'local', [0x0800] = 'IPv4', [0x0806] = 'ARP', [0x86dd] = 'IPv6', [0x8100] = 'VLAN',
  [0x88cc] = 'LLDP', [0x8847] = 'MPLS' } -- linux/if_ether.h

---@class DropsReport
---@field resent Aggregate
---@field resets Aggregate
local Report = {}
Report.__index = Report

local COUNT = { name = 'count', align = 'right', metric = 'counter' }

--- Creates the report.
---@param opt table
---@param out Output
---@param session Session
---@return DropsReport
function report.new(opt, out, session)
  return setmetatable({ opt = opt, out = out, session = session, addresses = addresses.new(), texts = {},
    resent = counter.new { 'peer', 'port', 'state' },
    -- Those that were sent: from which end, to whom, and why. Those that were received: from which end.
    resets = counter.new { 'end', 'port', 'peer', 'reason' },
    dropped_spec = tables.new('drops', { { name = 'reason' }, { name = 'location' }, { name = 'protocol' }, COUNT }),
    resent_spec = tables.new('retransmits', { { name = 'peer' }, { name = 'state' }, COUNT }),
    resets_spec = tables.new('resets', { { name = 'direction' }, { name = 'from' }, { name = 'to' },
      { name = 'reason' }, COUNT }),
  }, Report)
end

--- Sets the names of the numbers in the fields of an event.
---@param event Event
function Report:set_names(event)
  self.texts[event.name] = event_names.texts(public_event.real(event))
  if event.name == 'tcp:tcp_send_reset' then self.has_reason = event.fields.reason ~= nil end
end

--- Returns the text of a field of an event.
local function text_of(self, event, field, n)
  local text = self.texts[event] and self.texts[event][field]
  return n ~= report.NOT_KNOWN and (text and text(n) or n) or nil
end

local function protocol_of(n) return PROTOCOLS[n] or ('0x%04x'):format(n) end

--- Returns the id and the port of the other end, from an event that has them as fields.
function Report:peer(ev)
  local ids = self.addresses
  return ev.family == AF_INET and ids.v4(ev.daddr) or ids.v6(ev.daddr_v6), ev.dport
end

--- Prints a packet that is dropped.
function Report:print_drop(ev, reason)
  self.out:row({ 'event', 'drop', 'reason', text_of(self, 'skb:kfree_skb', 'reason', reason) or '', 'location',
    text_of(self, 'skb:kfree_skb', 'location', ev:u64 'location'), 'peer', protocol_of(ev.protocol) }, 'packet')
end

--- Prints a segment that is sent again, or a reset.
function Report:print_segment(event, why, peer, port)
  self.out:row({ 'event', event, 'reason', why, 'location', '', 'peer',
    self.addresses.with_port(peer, port) }, 'packet')
end

--- Counts a segment that is sent again.
function Report:resend(ev)
  local peer, port = self:peer(ev)
  self.resent:add(1, peer, port, ev.state)
  if self.opt.each then self:print_segment('retransmit', names.tcp_state(ev.state), peer, port) end
end

--- Counts a reset that was sent.
function Report:sent_reset(ev)
  local ids = self.addresses
  local from, from_port, peer, port
  local reason = self.has_reason and ev.reason or report.NOT_KNOWN
  if self.has_reason then
    from, from_port = ids.sockaddr(ev.saddr)
    peer, port = ids.sockaddr(ev.daddr)
  else -- before Linux 6.10
    from, from_port = ev.family == AF_INET and ids.v4(ev.saddr) or ids.v6(ev.saddr_v6), ev.sport
    peer, port = self:peer(ev)
  end
  self.resets:add(1, from, from_port, peer, reason)
  if self.opt.each then
    self:print_segment('reset sent', text_of(self, 'tcp:tcp_send_reset', 'reason', reason) or '', peer, port)
  end
end

--- Counts a reset that was received.
function Report:received_reset(ev)
  local peer, port = self:peer(ev)
  self.resets:add(1, peer, port, NOBODY, NOBODY)
  if self.opt.each then self:print_segment('reset received', '', peer, port) end
end

--- Prints the entries of a counter as a table, and clears it.
local function print_table(self, spec, counts, row_of)
  local list = {}
  counts:each(function(n, ...)
    local row = row_of(...)
    row.count, list[#list + 1] = n, row
  end)
  rows.print(self.out, spec, list, self.opt.top)
  counts:clear()
end

--- Prints what was counted since the last report.
---@param dropped Aggregate packets by reason, location and protocol
function Report:print(dropped)
  print_table(self, self.dropped_spec, dropped, function(reason, location, protocol)
    return { reason = text_of(self, 'skb:kfree_skb', 'reason', reason),
      location = text_of(self, 'skb:kfree_skb', 'location', location), protocol = protocol_of(protocol) }
  end)
  print_table(self, self.resent_spec, self.resent, function(peer, port, state)
    return { peer = self.addresses.with_port(peer, port), state = names.tcp_state(state) }
  end)
  print_table(self, self.resets_spec, self.resets, function(from, port, to, reason)
    local row = { direction = to == NOBODY and 'received' or 'sent', from = self.addresses.with_port(from, port) }
    if to ~= NOBODY then
      row.to, row.reason = self.addresses.text(to), text_of(self, 'tcp:tcp_send_reset', 'reason', reason)
    end
    return row
  end)
end

return report
