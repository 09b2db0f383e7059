-- SPDX-License-Identifier: GPL-2.0-only
--- UDP datagrams by process and the ends of the socket: how many, bytes, and times until they are answered.
local addresses = require 'lib.engines.net.addresses'
local array = require 'lib.array'
local intern = require 'lib.intern'
local rows = require 'lib.engines.rows'
local tables = require 'lib.table'

local datagrams = {}

local MAX, SOCKETS = 65536, 65536
local KERNEL = 0xffff000000000000ULL -- addresses of sockets are kept as what is above it
local NO_PEER = -1

-- The numbers of a socket. ASKS: 1: it has sent first, 2: it has received first.
local ENTRY, PID, PORTS, PEER, ASKED, ASKS, SOCKET = 0, 1, 2, 3, 4, 5, 6
local SENT, SENT_BYTES, RECEIVED, RECEIVED_BYTES, ANSWERS, ANSWERS_NS, ANSWERS_MAX, WIDTH = 0, 1, 2, 3, 4, 5, 6, 7

---@class Datagrams
local Datagrams = {}
Datagrams.__index = Datagrams

--- Creates the table.
---@param has fun(tid: integer): boolean
---@param opt table
---@param out Output
---@param session Session
---@return Datagrams
function datagrams.new(has, opt, out, session)
  local function right(name, unit, title, metric)
    return { name = name, title = title, unit = unit, align = 'right', metric = metric }
  end
  return setmetatable({ has = has, opt = opt, out = out, session = session, addresses = addresses.new(),
    keys = intern.new(4, MAX), sums = array.new((MAX + 1) * WIDTH), -- process, peer, its port, own port
    by_sk = {}, n = 0, sockets = array.new(SOCKETS * SOCKET), known_from = 0,
    spec = tables.new('udp', { { name = 'task' }, { name = 'port' }, { name = 'peer' },
      right('sent', nil, nil, 'counter'), right('sent_bytes', 'bytes', 'bytes', 'counter'),
      right('received', nil, nil, 'counter'), right('received_bytes', 'bytes', 'bytes', 'counter'),
      right('response_ns', 'ns', 'response'), right('response_max_ns', 'ns', 'max') }) }, Datagrams)
end

--- Returns the numbers of the socket of an event.
local function socket_of(self, ev)
  local sk = tonumber(ev:u64 'sk' - KERNEL)
  local at = self.by_sk[sk]
  if at then return at end
  if self.n == SOCKETS then self.by_sk, self.n = {}, 0 end -- no event says that a socket is closed
  at = self.n * SOCKET
  self.by_sk[sk], self.n = at, self.n + 1
  self.sockets[at + PID], self.sockets[at + ASKED], self.sockets[at + ASKS] = -1, 0, 0
  return at
end

--- Adds a datagram.
---@param ev Ev
---@param is_sent boolean
---@param peer integer id of an address
---@param peer_port integer 0: the socket has no peer
---@param port integer
function Datagrams:add(ev, is_sent, peer, peer_port, port)
  if not self.has(ev._tid) then return end
  local at, sockets, sums, pid, ports = socket_of(self, ev), self.sockets, self.sums, ev._pid, peer_port * 65536 + port
  if sockets[at + PID] ~= pid or sockets[at + PORTS] ~= ports or sockets[at + PEER] ~= peer then
    sockets[at + PID], sockets[at + PORTS], sockets[at + PEER], sockets[at + ASKED] = pid, ports, peer, 0
    -- The port of a socket that asks a peer is any one.
    sockets[at + ENTRY] = WIDTH * self.keys.id(pid, peer_port > 0 and peer or NO_PEER, peer_port,
      is_sent and peer_port > 0 and 0 or port)
    sockets[at + ASKS] = is_sent and 1 or 2
  end
  local entry, what = sockets[at + ENTRY], is_sent and SENT or RECEIVED
  sums[entry + what], sums[entry + what + 1] = sums[entry + what] + 1, sums[entry + what + 1] + ev.ret
  if is_sent == (sockets[at + ASKS] == 1) then
    sockets[at + ASKED] = ev._time
  elseif sockets[at + ASKED] > self.known_from then
    local ns = ev._time - sockets[at + ASKED]
    sums[entry + ANSWERS], sums[entry + ANSWERS_NS] = sums[entry + ANSWERS] + 1, sums[entry + ANSWERS_NS] + ns
    if ns > sums[entry + ANSWERS_MAX] then sums[entry + ANSWERS_MAX] = ns end
    sockets[at + ASKED] = 0
  end
end

--- Adds a datagram of a socket whose ends are as in packets.
function Datagrams:add_typed(ev, is_sent, family, port, peer_port, v4, a, b, c, d)
  self:add(ev, is_sent, self.addresses.of_socket(family, v4, a, b, c, d), addresses.port(peer_port), port)
end

--- Handles a gap.
---@param gap { to: number }
function Datagrams:lost(gap) self.known_from = math.max(self.known_from, gap.to) end

--- Prints the sums since the last report, and clears them.
function Datagrams:print()
  local keys, sums, list = self.keys, self.sums, {}
  for id = 0, keys:count() - 1 do
    local at, pid, port = id * WIDTH, keys:part(id, 1), keys:part(id, 4)
    local answers = sums[at + ANSWERS]
    if sums[at + SENT] + sums[at + RECEIVED] > 0 then
      list[#list + 1] = { task = rows.task(self.session, pid), port = port > 0 and port or nil,
        peer = self.addresses.with_port(keys:part(id, 2), keys:part(id, 3)), sent = sums[at + SENT],
        sent_bytes = sums[at + SENT_BYTES], received = sums[at + RECEIVED], received_bytes = sums[at + RECEIVED_BYTES],
        response_ns = rows.mean(sums[at + ANSWERS_NS], answers),
        response_max_ns = answers > 0 and sums[at + ANSWERS_MAX] or nil }
    end
    for i = at, at + WIDTH - 1 do sums[i] = 0 end
  end
  table.sort(list, function(a, b)
    local x, y = a.sent_bytes + a.received_bytes, b.sent_bytes + b.received_bytes
    if x ~= y then return x > y end
    if a.task ~= b.task then return a.task < b.task end
    if a.port ~= b.port then return (a.port or 0) < (b.port or 0) end
    return (a.peer or '') < (b.peer or '')
  end)
  rows.print(self.out, self.spec, list, self.opt.top)
  if keys:overflow() > 0 then
    self.out:warn(('udp: there are more than %d peers: others are left out'):format(MAX))
  end
end

return datagrams
