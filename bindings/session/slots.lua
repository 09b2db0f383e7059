-- SPDX-License-Identifier: GPL-2.0-only
--- Slots: an array of kept events. Unused slots cost no memory.
local ffi = require 'ffi'
local check = require 'bindings.base.check'
local libc = require 'bindings.base.libc'
local views = require 'bindings.view.views'

local C = ffi.C
local cast, type = ffi.cast, type
local slots = {}

local MAX = 2 ^ 26

--- An array of kept events, from session.slots(). Indexes start at 0.
---@class Slots
local Slots = {}
Slots.__index = Slots

local inner = setmetatable({}, { __mode = 'k' }) -- the private part of slots: scripts must not reach the pointers

--- Returns the private part of slots that have a slot i.
local function checked(self, i, method)
  local found = check.inner(inner, self, method)
  if type(i) ~= 'number' or not (i >= 0 and i < found.n) then
    error(('slot %s is out of range 0..%d'):format(check.shown(i), found.n - 1), 3)
  end
  return found
end

---@param n integer
---@param any ffi.ctype* view type for events of any class
---@return Slots
function slots.new(n, any)
  check.whole(n, 1, MAX, 'session.slots takes the number of slots')
  local memory = check.allocated(libc.calloc(n, ffi.sizeof 'struct event *'), 'slots')
  local timeline = check.allocated(C.timeline_new(0), 'slots')
  local new = setmetatable({}, Slots)
  inner[new] = {
    n = n,
    any = any,
    timeline = ffi.gc(timeline, C.timeline_free),
    memory = ffi.gc(memory, libc.free),
    list = cast('struct event **', memory),
  }
  return new
end

--- Stores a copy of an event in a slot, replacing the previous one. The slot stays empty if the slots already hold
--- 256 MiB.
---@param i integer
---@param ev Ev
function Slots:put(i, ev)
  local found = checked(self, i, 'slots:put')
  local e, list, timeline = views.event(ev, 'slots:put'), found.list, found.timeline
  if list[i] ~= nil then C.timeline_release(timeline, list[i]) end
  list[i] = C.timeline_keep(timeline, e)
end

--- Returns the event in a slot. It is valid as long as the script references it.
---@param i integer
---@return Ev? ev nil if the slot is empty
function Slots:get(i)
  local found = checked(self, i, 'slots:get')
  local timeline, e = found.timeline, found.list[i]
  if e == nil then return nil end
  C.timeline_retain(e)
  return ffi.gc(cast(found.any, e), function(kept) C.timeline_release(timeline, cast('struct event *', kept)) end)
end

--- Empties a slot.
---@param i integer
function Slots:drop(i)
  local found = checked(self, i, 'slots:drop')
  local list = found.list
  if list[i] == nil then return end
  C.timeline_release(found.timeline, list[i])
  list[i] = nil
end

return slots
