-- SPDX-License-Identifier: GPL-2.0-only
--- The report of tcp: sums by process and peer, times by state, and rows of single connections.
local array = require 'lib.array'
local connections = require 'lib.engines.net.connections'
local intern = require 'lib.intern'
local names = require 'lib.names'
local rows = require 'lib.engines.rows'
local tables = require 'lib.table'
local wait_totals = require 'lib.engines.off_cpu.wait_totals'

local report = {}

local AT, OUT, IN = connections.AT, connections.OUT, connections.IN
local MAX = 65536 -- entries
local ENTRY, REPORT, OPENED = AT.ENTRY, AT.REPORT, AT.OPENED
local OWNER, PEER, WAY = AT.OWNER, AT.PEER, AT.WAY
local STATES = 16 -- more than there are
local DIRECTION = { [OUT] = 'out', [IN] = 'in' }

-- What is added up by entry: these, in the order of a slot, and the greatest of the ones behind them.
local SUMS = { 'OPENED', 'FAILED', 'SENT', 'RECEIVED', 'RETRANSMITS', 'RESETS', 'ANSWERS', 'ANSWERS_NS' }
local CONNECTS, CONNECT_NS, CONNECT_MAX, ANSWERS_MAX, LONGEST, WIDTH = 8, 9, 10, 11, 12, 13

---@class TcpReport
---@field live Connections
local Report = {}
Report.__index = Report

local function columns()
  return {
    { name = 'task' }, { name = 'port' }, { name = 'peer' },
    { name = 'connections', align = 'right', metric = 'counter' },
    { name = 'failed', align = 'right', metric = 'counter' },
    { name = 'sent', align = 'right', unit = 'bytes', metric = 'counter' },
    { name = 'received', align = 'right', unit = 'bytes', metric = 'counter' },
    { name = 'connect_ns', title = 'connect', align = 'right', unit = 'ns' },
    { name = 'connect_max_ns', title = 'max', align = 'right', unit = 'ns' },
    { name = 'response_ns', title = 'response', align = 'right', unit = 'ns' },
    { name = 'response_max_ns', title = 'max', align = 'right', unit = 'ns' },
    { name = 'longest_ns', title = 'longest', align = 'right', unit = 'ns' },
    { name = 'retransmits', align = 'right', metric = 'counter' },
    { name = 'resets', align = 'right', metric = 'counter' },
  }
end

--- Creates the report.
---@param opt table
---@param out Output
---@param session Session
---@param live Connections
---@return TcpReport
function report.new(opt, out, session, live)
  local self = setmetatable({
    opt = opt, out = out, session = session, live = live, number = 1,
    keys = intern.new(4, MAX), -- process, address of the peer, port, how it was opened
    sums = array.new((MAX + 1) * WIDTH),
    spec = tables.new('tcp', columns()),
    states = opt.states and wait_totals.new(), -- the same key, with the state
    states_spec = opt.states and tables.new('states', { { name = 'task' }, { name = 'port' },
      { name = 'peer' }, { name = 'state' }, { name = 'count', align = 'right', metric = 'counter' },
      { name = 'total_ns', title = 'total', align = 'right', unit = 'ns' },
      { name = 'max_ns', title = 'max', align = 'right', unit = 'ns' } }),
  }, Report)
  function live.on_report(at) self:add(at) end
  function live.on_end(at) self:ended(at) end
  function live.on_connect(at) self:connected(at) end
  return self
end

--- Returns the port of an entry: that of the end that waits for connections.
local function port_of(slots, at)
  return slots[at + (slots[at + AT.WAY] == IN and AT.PORT or AT.PEER_PORT)]
end

--- Returns the numbers of the entry of a connection.
local function entry_of(self, at)
  local slots = self.live.slots
  if slots[at + REPORT] ~= self.number then
    slots[at + ENTRY] = WIDTH * self.keys.id(slots[at + OWNER], slots[at + PEER], port_of(slots, at), slots[at + WAY])
    slots[at + REPORT] = self.number
  end
  return slots[at + ENTRY]
end

--- Adds what a connection has counted since the last report.
function Report:add(at)
  local slots, sums, entry = self.live.slots, self.sums, entry_of(self, at)
  for i = 0, CONNECTS - 1 do sums[entry + i] = sums[entry + i] + slots[at + OPENED + i] end
  sums[entry + ANSWERS_MAX] = math.max(sums[entry + ANSWERS_MAX], slots[at + AT.ANSWERS_MAX])
end

--- Adds the time that it took to open or accept a connection, and prints it.
function Report:connected(at)
  local slots, sums, entry = self.live.slots, self.sums, entry_of(self, at)
  local ns = slots[at + AT.CONNECT]
  sums[entry + CONNECTS], sums[entry + CONNECT_NS] = sums[entry + CONNECTS] + 1, sums[entry + CONNECT_NS] + ns
  sums[entry + CONNECT_MAX] = math.max(sums[entry + CONNECT_MAX], ns)
  if self.opt.connects and ns > self.opt.connects then
    local pid, ids = slots[at + AT.OWNER], self.live.addresses
    self.out:row({ 'pid', pid, 'comm', self.session.task_name(pid), 'direction', DIRECTION[slots[at + AT.WAY]],
      'peer', ids.with_port(slots[at + AT.PEER], slots[at + AT.PEER_PORT]), 'connect_ms', ns / 1e6 }, 'connect')
  end
end

--- Adds the times of a connection that has ended, and prints it.
function Report:ended(at)
  local slots, sums, entry = self.live.slots, self.sums, entry_of(self, at)
  local ns = slots[at + AT.ENDED] - slots[at + AT.SINCE]
  local pid, way, port = slots[at + AT.OWNER], slots[at + AT.WAY], port_of(slots, at)
  local is_whole = slots[at + AT.SINCE] > 0 -- it was opened in the run
  if is_whole and (way == IN or slots[at + AT.CONNECT] > 0) then
    sums[entry + LONGEST] = math.max(sums[entry + LONGEST], ns)
  end
  for state = 1, self.states and STATES - 1 or 0 do
    local time = slots[at + AT.IN_STATE + state]
    if time > 0 then
      self.states:add(self.states.id(pid, slots[at + AT.PEER], port, way * STATES + state), time, 1, time)
    end
  end
  if not self.opt.than or ns <= self.opt.than or not is_whole then return end
  local ids, all = self.live.addresses, at + AT.ALL
  self.out:row({ 'pid', pid, 'comm', self.session.task_name(pid), 'direction', DIRECTION[way], 'local',
    ids.with_port(slots[at + AT.LOCAL], slots[at + AT.PORT]), 'peer',
    ids.with_port(slots[at + AT.PEER], slots[at + AT.PEER_PORT]), 'ms', ns / 1e6, 'sent', slots[all],
    'received', slots[all + 1], 'retransmits', slots[all + 2], 'resets', slots[all + 3] }, 'connection')
end

--- Returns the columns that say which entry a row is about.
local function named(self, pid, peer, port, way)
  local ids = self.live.addresses
  return { task = rows.task(self.session, pid), port = way == IN and port or nil,
    peer = (way == IN and ids.text(peer) or ids.with_port(peer, port)) or '[open before]' }
end

local function present(n) return n > 0 and n or nil end

local function row_of(self, id)
  local keys, sums, entry = self.keys, self.sums, id * WIDTH
  local row, value = named(self, keys:part(id, 1), keys:part(id, 2), keys:part(id, 3), keys:part(id, 4)), {}
  for i, name in ipairs(SUMS) do value[name] = sums[entry + i - 1] end
  row.connections, row.failed, row.sent, row.received = value.OPENED, value.FAILED, value.SENT, value.RECEIVED
  row.retransmits, row.resets = value.RETRANSMITS, value.RESETS
  row.connect_ns, row.connect_max_ns = rows.mean(sums[entry + CONNECT_NS], sums[entry + CONNECTS]),
    present(sums[entry + CONNECT_MAX])
  row.response_ns, row.response_max_ns = rows.mean(value.ANSWERS_NS, value.ANSWERS), present(sums[entry + ANSWERS_MAX])
  row.longest_ns = present(sums[entry + LONGEST])
  return row
end

--- Returns whether a row is before another one: the one with more bytes.
local function is_before(a, b)
  local x, y = a.sent + a.received, b.sent + b.received
  if x ~= y then return x > y end
  if a.connections ~= b.connections then return a.connections > b.connections end
  if a.task ~= b.task then return a.task < b.task end
  return a.peer < b.peer or a.peer == b.peer and (a.port or 0) < (b.port or 0)
end

local function print_states(self)
  local states = self.states
  local list = states:entries(function(id)
    local what = states:part(id, 4)
    local row = named(self, states:part(id, 1), states:part(id, 2), states:part(id, 3), math.floor(what / STATES))
    row.state = names.tcp_state(what % STATES)
    return row, table.concat({ row.task, row.state, row.peer, row.port or '' }, '\n')
  end)
  rows.print(self.out, self.states_spec, list, self.opt.top)
  states:finish(self.out, 'tcp')
end

--- Prints the sums since the last report.
function Report:print()
  local list = {}
  self.live:report()
  for id = 0, self.keys:count() - 1 do list[id + 1] = row_of(self, id) end
  table.sort(list, is_before)
  rows.print(self.out, self.spec, list, self.opt.top)
  if self.states then print_states(self) end
  if self.keys:overflow() > 0 then
    self.out:warn(('tcp: there are more than %d peers: others are left out'):format(MAX))
  end
  if self.live.left_out > 0 then
    self.out:warn(('tcp: %d connections are left out: too many were open'):format(self.live.left_out))
    self.live.left_out = 0
  end
  for i = 0, (self.keys:count() + 1) * WIDTH - 1 do self.sums[i] = 0 end
  self.keys:clear()
  self.number = self.number + 1
end

return report
