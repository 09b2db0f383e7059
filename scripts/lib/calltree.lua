-- SPDX-License-Identifier: GPL-2.0-only
--- Call trees with the time of each call. Each key (a CPU or thread) has its own stack of open calls.
---
---   local tree = calltree.new {}
---   tree:enter(1, ev._tid, ev._time)   -- function 1 is called
---   tree:leave(1, ev._tid, ev._time)   -- function 1 returns
---   tree:print(out, { 'read' }, true)
---
--- A return ends the youngest open call of the same function. Calls made in between that did not return stay open,
--- and are the callers of later calls.
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local tables = require 'lib.table'

local calltree = {}

local MIN_WIDTH = 20 -- of names
local ORDER = { 'call', 'depth', 'recursive', 'calls' }
local MAX_DEPTH = 1024 -- open calls of a key
local MAX_OPEN = 2 ^ 20 -- open calls of all keys
local MAX_KEYS = 65536

--- A call tree. Open calls have not returned yet.
---@class CallTree
---@field unstarted integer returns without a call
---@field dropped integer open calls dropped because of lost events
---@field evicted integer open calls dropped because there were too many
local CallTree = {}
CallTree.__index = CallTree

local function new_node(f, parent, depth)
  return { f = f, parent = parent, depth = depth, next = {}, calls = 0, own = 0 }
end

--- Returns the name with its indentation: at depth 3 "  |   |-name".
local function indented(depth, name) return depth == 1 and name or ('  | '):rep(depth - 2) .. '  |-' .. name end

local function spec(width, than, variance)
  local columns = {
    {
      name = 'call',
      title = (' '):rep(width - 13) .. 'function call',
      width = width,
      align = 'left',
      text = function(row) return indented(row.depth, row.call) end,
    },
    { name = 'recursive', title = 'R', width = 1, text = function(row) return row.recursive and 'R' or '' end },
    { name = 'depth', metric = 'label', data_only = true },
  }
  for _, column in ipairs(tables.latency_columns(than, nil, variance)) do
    columns[#columns + 1] = column
    if column.name == 'total_ns' then
      local own = tables.time_column 'self'
      own.metric, columns[#columns + 1] = 'counter', own
    end
  end
  return tables.new('calls', columns, { is_ordered = true })
end

---@class CallTreeSettings
---@field than? number threshold in ns; longer calls are counted
---@field variance? boolean the tree has the mean, the standard deviation and the variance
---@field ended? fun(f: integer, key: any, ns: number, first: any, last: any) called at each return; f: number of the
--- function; first and last: the arguments of enter() and leave()
---@field dropped? fun(key: any, time: number, first: any) called for each open call that is dropped; time: start of
--- the call

--- Creates an empty tree.
---@param settings CallTreeSettings
---@return CallTree
function calltree.new(settings)
  spec(MIN_WIDTH, settings.than ~= nil, settings.variance) -- declared, for --query
  tables.record('call', ORDER)
  local self = setmetatable({
    than = settings.than,
    variance = settings.variance,
    ended = settings.ended,
    dropped_call = settings.dropped,
    keys = intern.new(1, MAX_KEYS),
    stacks = {},
    root = new_node(0, nil, 0),
    nodes = {},
    open = 0,
    unstarted = 0,
    dropped = 0,
    evicted = 0,
  }, CallTree)
  return self
end

--- Returns the open calls of a key.
---@package
function CallTree:stack(key)
  local id = self.keys.id(key)
  local stack = self.stacks[id]
  if not stack then
    stack = { n = 0, f = {}, time = {}, node = {}, inner = {}, first = {}, key = key }
    self.stacks[id] = stack
  end
  return stack
end

--- Returns the node of a call of f from `node`. If f is among the callers the call is recursive and gets their node.
---@package
function CallTree:callee(node, f)
  local callee = node
  while callee and callee.f ~= f do
    callee = callee.parent
  end
  if callee then
    callee.recursive = true
  else
    callee = new_node(f, node, node.depth + 1)
    callee.hist = hist.new(self.than)
    self.nodes[#self.nodes + 1] = callee
  end
  node.next[f] = callee
  return callee
end

--- Marks a node as recursive if it is open. Calls of a recursive function are below its outermost call.
local function mark_recursive(stack, node)
  for i = 1, stack.n do
    if stack.node[i] == node then node.recursive = true end
  end
end

--- Drops the open calls of a stack. Returns their number.
local function drop(self, stack)
  self.open = self.open - stack.n
  local n = stack.n
  for i = 1, self.dropped_call and n or 0 do self.dropped_call(stack.key, stack.time[i], stack.first[i]) end
  stack.n, stack.first = 0, {}
  return n
end

--- Returns the start time of the oldest open call.
---@return number time ns; math.huge if no call is open
function CallTree:oldest()
  local oldest = math.huge
  for _, stack in pairs(self.stacks) do
    if stack.n > 0 then oldest = math.min(oldest, stack.time[1]) end
  end
  return oldest
end

--- Drops the open calls of a key, because their returns may be lost.
---@param key? any default: all keys
function CallTree:lose(key)
  for _, stack in pairs(self.stacks) do
    if key == nil or stack.key == key then self.dropped = self.dropped + drop(self, stack) end
  end
end

--- Records a call of a function.
---@param f integer number of the function, from 1
---@param key any CPU or thread whose stack the call is on
---@param time number ns
---@param first? any passed to `ended` and `dropped`
function CallTree:enter(f, key, time, first)
  local stack = self:stack(key)
  if stack.n >= MAX_DEPTH then self.evicted = self.evicted + drop(self, stack) end
  if self.open >= MAX_OPEN then
    for _, other in pairs(self.stacks) do
      self.evicted = self.evicted + drop(self, other)
    end
  end
  local n = stack.n + 1
  local caller = n > 1 and stack.node[n - 1] or self.root
  local node = caller.next[f] or self:callee(caller, f)
  if node.depth < n and not node.recursive then mark_recursive(stack, node) end
  node.calls = node.calls + 1
  stack.f[n], stack.time[n], stack.node[n], stack.inner[n], stack.first[n] = f, time, node, 0, first
  stack.n = n
  self.open = self.open + 1
end

--- Records the return of a function.
---@param f integer
---@param key any
---@param time number ns
---@param last? any passed to `ended`
function CallTree:leave(f, key, time, last)
  local stack = self:stack(key)
  local n = stack.n
  local i = n
  while i > 0 and stack.f[i] ~= f do
    i = i - 1
  end
  if i == 0 then
    self.unstarted = self.unstarted + 1
    return
  end
  local start, node, inner, first = stack.time[i], stack.node[i], stack.inner[i], stack.first[i]
  local ns = time - start
  for at = i, n - 1 do
    stack.f[at], stack.time[at], stack.node[at] = stack.f[at + 1], stack.time[at + 1], stack.node[at + 1]
    stack.inner[at], stack.first[at] = stack.inner[at + 1], stack.first[at + 1]
  end
  stack.n, stack.first[n] = n - 1, nil
  self.open = self.open - 1
  if ns < 0 then
    if self.dropped_call then self.dropped_call(key, start, first) end
    return
  end
  node.hist:add(ns)
  node.own = node.own + ns - inner
  if i > 1 then stack.inner[i - 1] = stack.inner[i - 1] + ns end
  if self.ended then self.ended(f, key, ns, first, last) end
end

--- Returns the nodes that have calls or whose descendants do, callers before callees.
---@return { f: integer, depth: integer, calls: integer, own: number, hist: Hist, recursive?: boolean }[]
function CallTree:list()
  local children, busy = {}, {}
  for i = #self.nodes, 1, -1 do -- callees were created after their callers
    local node = self.nodes[i]
    if node.calls > 0 or node.hist:stats().count > 0 or busy[node] then
      busy[node.parent] = true
      children[node.parent] = children[node.parent] or {}
      table.insert(children[node.parent], node)
    end
  end
  local list = {}
  local function add(node)
    if node.depth > 0 then list[#list + 1] = node end
    local callees = children[node] or {}
    local total = {}
    for _, child in ipairs(callees) do total[child] = tonumber(child.hist:stats().sum) end
    table.sort(callees, function(a, b)
      if total[a] ~= total[b] then return total[a] > total[b] end
      return a.f < b.f
    end)
    for _, child in ipairs(callees) do add(child) end
  end
  add(self.root)
  return list
end

--- Prints the tree.
---@param out Output
---@param names string[] names of the functions
---@param times boolean false: print only the callers and callees
function CallTree:print(out, names, times)
  local rows, width = {}, MIN_WIDTH
  for i, node in ipairs(self:list()) do
    local row = { call = names[node.f], depth = node.depth, recursive = node.recursive or false, self_ns = node.own }
    rows[i] = tables.latency_row(row, node.hist)
    if not times then row.calls = node.calls end
    width = math.max(width, #indented(row.depth, row.call))
  end
  if times then return out:table(spec(width, self.than ~= nil, self.variance), rows) end
  if #rows > 0 then out:stamp() end
  for _, row in ipairs(rows) do
    out:record('call', row, ORDER,
      indented(row.depth, row.call) .. (row.recursive and ' R' or '') .. '\n')
  end
end

--- Resets counts and times. Open calls stay open.
function CallTree:clear()
  for _, node in ipairs(self.nodes) do
    node.calls, node.own = 0, 0
    node.hist:clear()
  end
end

return calltree
