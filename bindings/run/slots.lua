-- SPDX-License-Identifier: GPL-2.0-only
--- Slots: an array of kept events. Unused slots cost no memory.
local ffi = require 'ffi'
local check = require 'bindings.base.check'
local libc = require 'bindings.base.libc'
local views = require 'bindings.view.views'

local C = ffi.C
local cast, getmetatable, type = ffi.cast, getmetatable, type
local slots = {}

local MAX = 2 ^ 26
local EVENTS = ffi.typeof 'struct event **'

--- An array of kept events, from session.slots(). Indexes start at 0.
---@class Slots
local Slots = {}
Slots.__index = Slots

local function check_slot(self, i, method)
  if getmetatable(self) ~= Slots then check.self(self, Slots, method) end
  if type(i) ~= 'number' or not (i >= 0 and i < self._n) then
    error(('slot %s is out of range 0..%d'):format(check.shown(i), self._n - 1), 3)
  end
end

---@param n integer
---@param any ffi.ctype* view type for events of any class
---@return Slots
function slots.new(n, any)
  check.whole(n, 1, MAX, 'session.slots takes the number of slots')
  local memory = check.allocated(libc.calloc(n, ffi.sizeof 'struct event *'), 'slots')
  local timeline = check.allocated(C.timeline_new(0), 'slots')
  return setmetatable({
    _n = n,
    _any = any,
    _timeline = ffi.gc(timeline, C.timeline_free),
    _memory = ffi.gc(memory, libc.free),
    _at = cast('uintptr_t', memory), -- not a pointer, which could be indexed
  }, Slots)
end

--- Stores a copy of an event in a slot, replacing the previous one. The slot stays empty if the slots already hold
--- 256 MiB.
---@param i integer
---@param ev Ev
function Slots:put(i, ev)
  check_slot(self, i, 'slots:put')
  local e, list = views.event(ev, 'slots:put'), cast(EVENTS, self._at)
  if list[i] ~= nil then C.timeline_release(self._timeline, list[i]) end
  list[i] = C.timeline_keep(self._timeline, e)
end

--- Returns the event in a slot. It is valid as long as the script references it.
---@param i integer
---@return Ev? ev nil if the slot is empty
function Slots:get(i)
  check_slot(self, i, 'slots:get')
  local timeline, e = self._timeline, cast(EVENTS, self._at)[i]
  if e == nil then return nil end
  C.timeline_retain(e)
  return ffi.gc(cast(self._any, e), function(kept) C.timeline_release(timeline, cast('struct event *', kept)) end)
end

--- Empties a slot.
---@param i integer
function Slots:drop(i)
  check_slot(self, i, 'slots:drop')
  local list = cast(EVENTS, self._at)
  if list[i] == nil then return end
  C.timeline_release(self._timeline, list[i])
  list[i] = nil
end

return slots
