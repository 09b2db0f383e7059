-- SPDX-License-Identifier: GPL-2.0-only
--- Accept queues: how many connections wait to be accepted when another one comes, by port of the listening socket.
local array = require 'lib.array'
local failure = require 'lib.failure'
local fs = require 'lib.fs'
local tables = require 'lib.table'
local typed_events = require 'lib.engines.typed_events'

local accept_queues = {}

local PORTS = 65536
local LISTEN = 10
local EVENT = ('tp_btf:sk_data_ready/sk->__sk_common.skc_state == %d/'):format(LISTEN)

--- Returns how many connections have found a queue full in this network namespace, since it exists.
local function overflows()
  local names, values = (fs.read '/proc/net/netstat' or ''):match 'TcpExt:([^\n]*)\nTcpExt:([^\n]*)'
  local at, value = 0, nil
  for name in (names or ''):gmatch '%S+' do
    at = at + 1
    if name == 'ListenOverflows' then break end
  end
  for n in (values or ''):gmatch '%d+' do
    at = at - 1
    if at == 0 then value = tonumber(n) end
  end
  return value or 0
end

---@class AcceptQueues
local AcceptQueues = {}
AcceptQueues.__index = AcceptQueues

--- Adds the handler of connections that come to a listening socket.
---@param handlers table
---@param session Session
---@param opt table
---@param out Output
---@param read fun(ev: Ev, queues: AcceptQueues) calls queues:add()
---@return AcceptQueues
function accept_queues.follow(handlers, session, opt, out, read)
  if not typed_events.has(opt, session, 'sock:sk_data_ready') then
    failure.unavailable '--queues needs live events, and a kernel with BTF and sock:sk_data_ready (Linux 6.4)'
  end
  local self = setmetatable({ out = out, ports = {}, overflows = overflows(),
    counts = array.new(PORTS), sums = array.new(PORTS), most = array.new(PORTS), limits = array.new(PORTS),
    full = array.new(PORTS),
    spec = tables.new('queues', { { name = 'port' }, { name = 'connections', align = 'right', metric = 'counter' },
      { name = 'waiting', align = 'right' }, { name = 'max', align = 'right' }, { name = 'backlog', align = 'right' },
      { name = 'full', align = 'right', metric = 'counter' } }) }, AcceptQueues)
  handlers[EVENT] = function(ev) read(ev, self) end
  return self
end

--- Adds a connection.
---@param port integer
---@param waiting integer that can be accepted, with this one
---@param backlog integer that may wait; when there are more, others are dropped
function AcceptQueues:add(port, waiting, backlog)
  if self.counts[port] == 0 then self.ports[#self.ports + 1] = port end
  self.counts[port], self.sums[port] = self.counts[port] + 1, self.sums[port] + waiting
  self.limits[port] = backlog
  if waiting > self.most[port] then self.most[port] = waiting end
  if waiting > backlog then self.full[port] = self.full[port] + 1 end
end

--- Prints the queues since the last report.
---@param top integer rows
function AcceptQueues:print(top)
  local rows = {}
  local most = self.most
  table.sort(self.ports, function(a, b) return most[a] > most[b] or most[a] == most[b] and a < b end)
  for i, port in ipairs(self.ports) do
    if i <= top then
      rows[i] = { port = port, connections = self.counts[port], max = self.most[port], backlog = self.limits[port],
        waiting = math.floor(self.sums[port] / self.counts[port] * 10 + 0.5) / 10, full = self.full[port] }
    end
    self.counts[port], self.sums[port], self.most[port], self.full[port] = 0, 0, 0, 0
  end
  self.ports = {}
  self.out:table(self.spec, rows)
  local before = self.overflows
  self.overflows = overflows()
  if self.overflows > before then
    self.out:warn(('tcp: %d connections of this network namespace have found the accept queue full'):format(
      self.overflows - before))
  end
end

return accept_queues
