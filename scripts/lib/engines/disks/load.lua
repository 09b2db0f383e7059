-- SPDX-License-Identifier: GPL-2.0-only
--- The load of disks by key: requests, bytes, times, and how many requests are in flight at a time.
local array = require 'lib.array'
local hist = require 'lib.hist'
local intern = require 'lib.intern'

local load = {}

local MAX_KEYS = 8192 -- further ones share the last

---@class DiskLoad
---@field id fun(...: number): integer of four keys
local DiskLoad = {}
DiskLoad.__index = DiskLoad

---@return DiskLoad
function load.new()
  local keys = intern.new(4, MAX_KEYS)
  local self = setmetatable({ id = keys.id, keys = keys, hists = hist.set(MAX_KEYS + 1), since = 0 }, DiskLoad)
  for _, name in ipairs { 'depth', 'most', 'changed', 'area', 'busy', 'bytes', 'waited' } do
    self[name] = array.new(MAX_KEYS + 1)
  end
  return self
end

--- Counts the time up to now with as many requests as there are.
local function count_time(self, id, now)
  local depth, ns = self.depth[id], now - math.max(self.changed[id], self.since)
  if depth > 0 and ns > 0 then
    self.area[id], self.busy[id] = self.area[id] + depth * ns, self.busy[id] + ns
  end
  self.changed[id] = now
end

--- A request begins.
function DiskLoad:begin(id, now)
  count_time(self, id, now)
  local depth = self.depth[id] + 1
  self.depth[id] = depth
  if depth > self.most[id] then self.most[id] = depth end
end

--- A request is given to the device.
function DiskLoad:issue(id, waited) self.waited[id] = self.waited[id] + waited end

--- A request has ended, ns after it began; nil: it is not known when it ended.
function DiskLoad:finish(id, now, bytes, ns)
  count_time(self, id, now)
  self.depth[id] = self.depth[id] - 1
  if not ns then return end
  self.bytes[id] = self.bytes[id] + bytes
  self.hists:add(id, ns)
end

--- Calls a function for each key with its figures.
---@param now number
---@param each fun(id: integer, found: Hist?, figures: table)
function DiskLoad:each(now, each)
  local elapsed = math.max(now - self.since, 1)
  for id = 0, MAX_KEYS do
    if id < self.keys:count() or id == MAX_KEYS and self.keys:overflow() > 0 then
      count_time(self, id, now)
      each(id, self.hists:get(id), { bytes = self.bytes[id], queue = self.area[id] / elapsed, most = self.most[id],
        busy = self.busy[id] / elapsed * 100, waited_ns = self.waited[id] })
    end
  end
end

--- Forgets the requests that are in flight, after lost events.
function DiskLoad:forget(now)
  for id = 0, MAX_KEYS do
    if self.depth[id] > 0 then
      count_time(self, id, now)
      self.depth[id] = 0
    end
  end
end

--- Begins a new interval.
function DiskLoad:clear(now)
  for id = 0, MAX_KEYS do
    if id < self.keys:count() or id == MAX_KEYS then
      self.area[id], self.busy[id], self.bytes[id], self.waited[id] = 0, 0, 0, 0
      self.most[id] = self.depth[id]
    end
  end
  self.hists:clear()
  self.since = now
end

return load
