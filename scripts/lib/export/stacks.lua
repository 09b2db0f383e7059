-- SPDX-License-Identifier: GPL-2.0-only
--- Stacks and samples for exports: all stacks as one tree of functions, and samples in columns.
local ffi = require 'ffi'

local stacks = {}

local FRAMES = 2 ^ 24 -- more than there can be frames, to make a key of a node and a frame
local MAX_SAMPLES = 2 ^ 23 -- kept for formats that are written at the end: 256 MB

--- Returns the name of a frame as flame graphs have it: the symbol, '[FILE]' or 'Unknown'.
---@param frame Frame
---@return string
function stacks.name(frame)
  if frame.symbol then return frame.symbol end
  local file = not frame.in_kernel and frame.dso and frame.dso:match '[^/]*$':match '^%[?(.-)%]?$'
  return file and ('[%s]'):format(file) or 'Unknown'
end

--- A function, or with --srcline a line of it.
---@class TreeFrame
---@field name string
---@field dso string '' if it is unknown
---@field in_kernel boolean
---@field is_unknown boolean the name is that of the file
---@field file? string source file
---@field line? integer

--- Nodes are numbered from 1; node 0 is above the roots. Frames are numbered from 0.
---@class StackTree
---@field parent integer[] by node
---@field frame integer[] by node
---@field frames table<integer, TreeFrame>
---@field nr_frames integer
local Tree = {}
Tree.__index = Tree

---@param target ExportTarget
---@return StackTree
function stacks.tree(target)
  local self = setmetatable({ target = target, parent = {}, frame = {}, frames = {}, nr_frames = 0, _nodes = {},
    _by_key = {}, _leaves = {} }, Tree)
  target.before_forget(function() self._leaves = {} end)
  return self
end

function Tree:_frame(frame)
  local name, dso = stacks.name(frame), frame.dso or ''
  local key = ('%s\n%s\n%s'):format(name, dso, frame.source or '')
  local found = self._by_key[key]
  if not found then
    found = self.nr_frames
    local file, line = (frame.source or ''):match '^(.*):(%d+)$'
    self.frames[found] = { name = name, dso = dso, in_kernel = frame.in_kernel, is_unknown = not frame.symbol,
      file = file, line = tonumber(line) }
    self._by_key[key], self.nr_frames = found, found + 1
  end
  return found
end

function Tree:_add(stack)
  local list, node = self.target.frames.list(stack), 0
  for i = #list, 1, -1 do
    local frame = self:_frame(list[i])
    local key = node * FRAMES + frame
    local child = self._nodes[key]
    if not child then
      child = #self.parent + 1
      self.parent[child], self.frame[child], self._nodes[key] = node, frame, child
    end
    node = child
  end
  self._leaves[stack] = node
  return node
end

--- Returns the node of a stack's innermost frame; 0 if the stack has no frames.
---@param stack integer `ev._stack`
---@return integer node
function Tree:leaf(stack) return self._leaves[stack] or self:_add(stack) end

--- Returns the frames of a node, the innermost first.
---@param node integer
---@return integer[] frames
function Tree:path(node)
  local path = {}
  while node ~= 0 do
    path[#path + 1] = self.frame[node]
    node = self.parent[node]
  end
  return path
end

--- Samples in the order of time.
---@class SampleColumns
---@field n integer
---@field time ffi.cdata* double[]
---@field node ffi.cdata* int32_t[]
---@field row ffi.cdata* int32_t[]: what the format tells apart, such as threads
---@field weight ffi.cdata* double[]
local Columns = {}
Columns.__index = Columns

---@return SampleColumns
function stacks.columns() return setmetatable({ n = 0, _room = 0 }, Columns) end

local COLUMNS = { time = 'double[?]', node = 'int32_t[?]', row = 'int32_t[?]', weight = 'double[?]' }

function Columns:_grow()
  local room = math.max(1024, self._room * 2)
  for name, type in pairs(COLUMNS) do
    local column = ffi.new(type, room)
    if self.n > 0 then ffi.copy(column, self[name], self.n * ffi.sizeof(self[name]) / self._room) end
    self[name] = column
  end
  self._room = room
end

--- Adds a sample. Returns false if there are too many.
---@return boolean
function Columns:add(time, node, row, weight)
  local n = self.n
  if n == self._room then
    if n >= MAX_SAMPLES then return false end
    self:_grow()
  end
  self.time[n], self.node[n], self.row[n], self.weight[n] = time, node, row, weight
  self.n = n + 1
  return true
end

--- Returns the numbers of the samples of each row, in the order of time.
---@param rows integer
---@return table<integer, integer[]> by_row
function Columns:by_row(rows)
  local lists = {}
  for row = 1, rows do lists[row] = {} end
  for i = 0, self.n - 1 do
    local list = lists[self.row[i]]
    list[#list + 1] = i
  end
  for _, list in ipairs(lists) do -- events that were late
    table.sort(list, function(a, b)
      if self.time[a] ~= self.time[b] then return self.time[a] < self.time[b] end
      return a < b
    end)
  end
  return lists
end

--- Returns the unit of a sample's period.
---@param event Event
---@return 'nanoseconds'|'count'|nil unit nil: each sample counts as one
function stacks.unit(event)
  if event.request.perf_event == 0 then return nil end
  return event.name:match '^%a+%-clock' and 'nanoseconds' or 'count'
end

return stacks
