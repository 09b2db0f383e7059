-- SPDX-License-Identifier: GPL-2.0-only
--- TCP connections, followed from event to event: whose they are, their ends, states, bytes and times.
---
--- A connection that is opened from here belongs to the process that calls connect(). One that is accepted belongs to
--- the process whose accept() returns the address of its peer, or if that asked for no address, to the first one that
--- sends, receives or closes: packets arrive in the time of any task. Each has a slot of numbers, and events change
--- only this slot.
local addresses = require 'lib.engines.net.addresses'
local array = require 'lib.array'
local bit = require 'bit'

local connections = {}

local MAX = 65536 -- connections at a time
local KERNEL = 0xffff000000000000ULL -- see key_of()
local ESTABLISHED, SYN_SENT, SYN_RECV, CLOSE, CLOSE_WAIT, LISTEN, STATES = 1, 2, 3, 7, 8, 10, 16
local AF_INET, AF_INET6 = 2, 10
local PORTS = 65536
local INTERRUPT = 0x18 -- of common_flags: in a device's or a deferred interrupt
local NOBODY, OTHERS = -1, -2 -- owners: not yet known, and a process that is not asked for

--- How a connection was opened: from here, by the other end, or before the run.
connections.OUT, connections.IN, connections.BEFORE = 1, 2, 3
local OUT, IN, BEFORE = connections.OUT, connections.IN, connections.BEFORE

-- The numbers of a slot. From OPENED to RESETS they are since the last report; the sums of the connection add the
-- ones from ALL.
local SK, WAY, OWNER, PEER, PEER_PORT, PORT, LOCAL = 0, 1, 2, 3, 4, 5, 6
local SINCE, STATE, STATE_SINCE, CONNECT, ENDED, ASKED = 7, 8, 9, 10, 11, 12
local OPENED, FAILED, SENT, RECEIVED, RETRANSMITS, RESETS = 13, 14, 15, 16, 17, 18
local ANSWERS, ANSWERS_NS, ANSWERS_MAX = 19, 20, 21
local ALL = 22 -- SENT to RESETS before the last report
local READY = 26 -- when it could be accepted
local ENTRY, REPORT = 27, 28 -- for on_report and others: the entry of the connection in a report, and which report
local IN_STATE = 29 -- ns, by state
local WIDTH = IN_STATE + STATES

--- Indexes of what a slot has, for on_report and on_end.
connections.AT = { WAY = WAY, OWNER = OWNER, PEER = PEER, PEER_PORT = PEER_PORT, PORT = PORT, LOCAL = LOCAL,
  SINCE = SINCE, CONNECT = CONNECT, ENDED = ENDED, OPENED = OPENED, ANSWERS_MAX = ANSWERS_MAX, ALL = ALL, ENTRY = ENTRY,
  REPORT = REPORT, IN_STATE = IN_STATE }

--- Addresses in the kernel as numbers, which are the keys of a table.
local function key_of(address) return tonumber(address - KERNEL) end

---@class Connections
---@field addresses Addresses
---@field slots Array
---@field has fun(tid: integer): boolean
---@field on_connect fun(slot: integer) called when a connection from here is open, and when one is accepted
---@field on_end fun(slot: integer) called with each connection that has ended
---@field on_report fun(slot: integer) called with each connection before its numbers start anew
---@field package _by_sk table<number, integer>
---@field package _ready Array by port of the peer: 1 + the slot of the connection that can be accepted
---@field package _free integer[]
---@field package _used integer slots that were ever used
---@field package _known_from number the end of the last gap
---@field left_out integer connections for which there was no room
---@field sees_ends boolean tcp:tcp_destroy_sock is there
---@field listens table<integer, boolean> ports at which sockets listen, for set_before()
local Connections = {}
Connections.__index = Connections

--- Creates an empty table of connections.
---@param has fun(tid: integer): boolean returns whether the connections of a thread are asked for
---@return Connections
function connections.new(has)
  return setmetatable({ addresses = addresses.new(), slots = array.new(MAX * WIDTH), has = has, left_out = 0,
    _by_sk = {}, _ready = array.new(PORTS), _free = {}, _used = 0, _known_from = 0 }, Connections)
end

--- Returns the slot of a new connection; nil: there is no room.
local function new_slot(self, sk, way, time)
  local at
  local free = self._free
  local n = #free
  if n > 0 then
    at, free[n] = free[n], nil
  elseif self._used < MAX then
    at = self._used * WIDTH
    self._used = self._used + 1
  else
    self.left_out = self.left_out + 1
    return
  end
  local slots = self.slots
  for i = at, at + WIDTH - 1 do slots[i] = 0 end
  slots[at + SK], slots[at + WAY], slots[at + OWNER], slots[at + PEER] = sk, way, NOBODY, -1
  slots[at + SINCE], slots[at + STATE_SINCE] = way ~= BEFORE and time or 0, time
  self._by_sk[sk] = at
  return at
end

local function own(self, at, ev)
  local slots = self.slots
  if slots[at + OWNER] == NOBODY then slots[at + OWNER] = self.has(ev._tid) and ev._pid or OTHERS end
end

--- Reports what a connection has counted, and starts to count anew.
local function flush(self, at)
  local slots = self.slots
  if slots[at + OWNER] >= 0 then self.on_report(at) end
  for i = 0, 3 do slots[at + ALL + i] = slots[at + ALL + i] + slots[at + SENT + i] end
  for i = at + OPENED, at + ANSWERS_MAX do slots[i] = 0 end
end

--- Ends a connection, and forgets it.
local function finish(self, at)
  local slots = self.slots
  flush(self, at)
  if slots[at + OWNER] >= 0 and slots[at + ENDED] > 0 then self.on_end(at) end
  self._by_sk[slots[at + SK]] = nil
  slots[at + WAY] = 0
  self._free[#self._free + 1] = at
end

--- Takes the ends of a connection from an event that has them.
local function set_ends(self, at, ev)
  local slots, ids, is_v4 = self.slots, self.addresses, ev.family == AF_INET
  slots[at + PORT], slots[at + PEER_PORT], slots[at + REPORT] = ev.sport, ev.dport, 0
  if is_v4 then
    slots[at + PEER], slots[at + LOCAL] = ids.v4(ev.daddr), ids.v4(ev.saddr)
  else
    slots[at + PEER], slots[at + LOCAL] = ids.v6(ev.daddr_v6), ids.v6(ev.saddr_v6)
  end
end

--- Returns the slot of the connection that an event begins, after the one before it of the same socket; nil: none.
local function begin(self, at, ev, sk)
  local way = ev.newstate == SYN_SENT and OUT or ev.newstate == SYN_RECV and ev.oldstate == LISTEN and IN or nil
  if not way then return at end
  if at then finish(self, at) end
  at = new_slot(self, sk, way, ev._time)
  if at and way == OUT then own(self, at, ev) end
  if at then self.slots[at + OPENED] = 1 end
  return at
end

--- Handles sock:inet_sock_set_state.
---@param ev Ev
function Connections:state(ev)
  local sk, slots, new, old, time = key_of(ev:u64 'skaddr'), self.slots, ev.newstate, ev.oldstate, ev._time
  if new == LISTEN or old == LISTEN and new == CLOSE then return end
  local at = begin(self, self._by_sk[sk], ev, sk)
  if not at then
    if new == CLOSE then return end -- nothing of it is known
    at = new_slot(self, sk, BEFORE, time)
    if not at then return end
  end
  if old == SYN_SENT then
    if new == ESTABLISHED then
      slots[at + CONNECT] = time - slots[at + SINCE]
    else
      slots[at + FAILED] = 1
    end
  end
  if slots[at + STATE] == old then
    slots[at + IN_STATE + old] = slots[at + IN_STATE + old] + time - slots[at + STATE_SINCE]
  end
  slots[at + STATE], slots[at + STATE_SINCE] = new, time
  if slots[at + PEER] < 0 or slots[at + PORT] == 0 then set_ends(self, at, ev) end
  if old == SYN_RECV and new == ESTABLISHED then
    slots[at + READY], self._ready[slots[at + PEER_PORT]] = time, at + 1
  end
  if (old == ESTABLISHED or old == CLOSE_WAIT) and bit.band(ev.common_flags, INTERRUPT) == 0 then
    own(self, at, ev) -- it closes
  end
  if old == SYN_SENT and new == ESTABLISHED and slots[at + OWNER] >= 0 then self.on_connect(at) end
  if new == CLOSE then
    slots[at + ENDED] = time
    if not self.sees_ends then finish(self, at) end
  end
end

--- Handles the end of an accept() that has returned a connection.
---@param ev Ev
---@param peer integer64? the first 8 bytes of the address of its peer
function Connections:accepted(ev, peer)
  if not peer then return end
  local family = tonumber(bit.band(peer, 0xffff))
  local port = addresses.port(tonumber(bit.band(bit.rshift(peer, 16), 0xffff)))
  if family ~= AF_INET and family ~= AF_INET6 then return end
  local slots, at = self.slots, self._ready[port] - 1
  self._ready[port] = 0
  if at < 0 or slots[at + WAY] ~= IN or slots[at + PEER_PORT] ~= port or slots[at + OWNER] ~= NOBODY then return end
  if family == AF_INET
    and slots[at + PEER] ~= self.addresses.of_socket(family, tonumber(bit.rshift(peer, 32)), 0, 0, 0, 0) then
    return
  end
  own(self, at, ev)
  slots[at + CONNECT] = ev._time - slots[at + READY]
  if slots[at + OWNER] >= 0 then self.on_connect(at) end
end

--- Handles tcp:tcp_destroy_sock: until then, a program may read what came before the end.
---@param ev Ev
function Connections:destroyed(ev)
  local at = self._by_sk[key_of(ev:u64 'skaddr')]
  if at then finish(self, at) end
end

--- Returns the slot of a socket that is used; nil: there is no room.
local function used(self, ev)
  local sk = key_of(ev:u64 'sk')
  local at = self._by_sk[sk] or new_slot(self, sk, BEFORE, ev._time)
  if at and self.slots[at + OWNER] == NOBODY then own(self, at, ev) end
  return at
end

--- Adds the time from what was received last until it is answered, or from what was sent last to the answer.
local function add_answer(self, at, time)
  local slots = self.slots
  local ns = time - slots[at + ASKED]
  if slots[at + ASKED] > self._known_from then
    slots[at + ANSWERS], slots[at + ANSWERS_NS] = slots[at + ANSWERS] + 1, slots[at + ANSWERS_NS] + ns
    if ns > slots[at + ANSWERS_MAX] then slots[at + ANSWERS_MAX] = ns end
  end
  slots[at + ASKED] = 0
end

--- Returns the slot if its ends are not known.
local function without_ends(slots, at) return slots[at + PEER] < 0 and at or nil end

--- Handles sock:sock_send_length with bytes.
---@param ev Ev
---@return integer? slot if its ends are not known
function Connections:sent(ev)
  local slots, at = self.slots, used(self, ev)
  if not at then return end
  slots[at + SENT] = slots[at + SENT] + ev.ret
  if slots[at + WAY] ~= IN then
    slots[at + ASKED] = ev._time
  elseif slots[at + ASKED] > 0 then
    add_answer(self, at, ev._time)
  end
  return (without_ends(slots, at))
end

--- Handles sock:sock_recv_length with bytes.
---@param ev Ev
---@return integer? slot if its ends are not known
function Connections:received(ev)
  local slots, at = self.slots, used(self, ev)
  if not at then return end
  slots[at + RECEIVED] = slots[at + RECEIVED] + ev.ret
  if slots[at + WAY] == IN then
    slots[at + ASKED] = ev._time
  elseif slots[at + ASKED] > 0 then
    add_answer(self, at, ev._time)
  end
  return (without_ends(slots, at))
end

--- Sets the ends of a connection that was open before the run. Addresses and the port of the peer are as in packets.
---@param at integer
---@param family integer
---@param port integer
---@param peer_port integer
---@param v4 integer
---@param a integer the words of an IPv6 address
---@param b integer
---@param c integer
---@param d integer
function Connections:set_before(at, family, port, peer_port, v4, a, b, c, d)
  local slots = self.slots
  slots[at + PORT], slots[at + PEER_PORT] = port, addresses.port(peer_port)
  slots[at + PEER] = self.addresses.of_socket(family, v4, a, b, c, d)
  slots[at + WAY], slots[at + REPORT] = self.listens[port] and IN or OUT, 0
end

--- Counts an event of a socket.
local function count(self, ev, what)
  local at = self._by_sk[key_of(ev:u64 'skaddr')]
  if at then self.slots[at + what] = self.slots[at + what] + 1 end
end

--- Handles tcp:tcp_retransmit_skb.
---@param ev Ev
function Connections:retransmitted(ev) count(self, ev, RETRANSMITS) end

--- Handles tcp:tcp_receive_reset and tcp:tcp_send_reset.
---@param ev Ev
function Connections:reset(ev) count(self, ev, RESETS) end

--- Handles a gap: what is known of a request does not last over it.
---@param gap { to: number }
function Connections:lost(gap) self._known_from = math.max(self._known_from, gap.to) end

--- Reports all connections.
function Connections:report()
  for i = 0, self._used - 1 do
    if self.slots[i * WIDTH + WAY] ~= 0 then flush(self, i * WIDTH) end
  end
end

return connections
