-- SPDX-License-Identifier: GPL-2.0-only
--- The events that lie between those of pairs, as scripts see them (runtime/relations/history.h).
local ffi = require 'ffi'
local pair = require 'bindings.pairs.pair'
local views = require 'bindings.view.views'

local C = ffi.C

---@class History
---@field classes table<integer, Event> what is kept, by class
---@field missing_until number ns: of what is older, some is missing
local History = {}
History.__index = History

local history = {}

---@param timeline ffi.cdata* where the copies are
---@param list Event[] what is kept
---@param most integer events that are added at once
---@param max_bytes number beyond it the oldest leave
---@return History
function history.new(timeline, list, most, max_bytes)
  local self = setmetatable({
    classes = {},
    copies = ffi.new('struct event *[?]', most),
    timeline = timeline,
    missing_until = -math.huge,
    _history = ffi.gc(C.history_new(timeline, max_bytes), C.history_free),
    _stats = ffi.new 'struct history_stats',
  }, History)
  for _, event in ipairs(list) do
    self.classes[event.class] = event
    C.history_want(self._history, event.class)
  end
  return self
end

--- Keeps the events of a batch; copies[i] is then what events[i] became, or NULL.
---@param list ffi.cdata* struct event *
---@param n integer
function History:add(list, n)
  self._list, self._n = list, n
  C.history_add(self._history, list, n, self.copies)
end

--- The copy of an event that a handler was given; the event itself where there was no room for one.
---@param ev Ev
---@return ffi.cdata* e struct event *
---@return boolean is_copy
function History:copy(ev)
  local e = views.event(ev, 'what shows details')
  local i = e - self._list
  if not (i >= 0 and i < self._n and self._list + i == e) then
    error('details are of an event whose handler runs, not of one that was kept', 3)
  end
  local copy = self.copies[i]
  if copy == nil then return e, false end
  return copy, true
end

--- The event that a pair began with; nil where it was not kept.
---@param p Pair|{ first_event: ffi.cdata* }
---@return ffi.cdata*? struct event *
function History.first(_, p)
  if type(p) == 'table' then return p.first_event end
  local first = pair.of(p, 'what shows details').first_event
  return first ~= nil and first or nil
end

---@return integer events kept
function History:count() return C.history_count(self._history) end

---@param time number events older than this are not needed any more
function History:forget(time) C.history_forget(self._history, time) end

--- Brings missing_until up to date.
---@return number evicted events that have left, or were not kept, for want of room
function History:check()
  C.history_read_stats(self._history, self._stats)
  self.missing_until = self._stats.evicted_until
  return tonumber(self._stats.evicted)
end

--- How many of the kept events are older than a time. They are numbered from 0 until some are forgotten.
---@param time number
---@return integer
function History:find(time) return C.history_find(self._history, time) end

--- Event number i as scripts see it, and what it is; nil beyond the youngest.
---@param i integer
---@return any ev
---@return Event? event
function History:at(i)
  local e = C.history_at(self._history, i)
  if e == nil then return end
  return self:view(e)
end

--- A kept event as scripts see it, and what it is.
---@param e ffi.cdata* struct event *
---@return any ev
---@return Event event
function History:view(e)
  local event = self.classes[e.class]
  return ffi.cast(event.view.type, e), event
end

--- The number of a kept event; where it has left, of the oldest one that is not older.
---@param e ffi.cdata* struct event *
---@return integer index
---@return boolean found
function History:index(e)
  local first = self:find(e.time)
  local i, at = first, C.history_at(self._history, first)
  while at ~= nil and at ~= e and at.time == e.time do
    i = i + 1
    at = C.history_at(self._history, i)
  end
  if at == e then return i, true end
  return first, false
end

--- The event stays until it is released, even if it is forgotten.
---@param e ffi.cdata* struct event *, kept
function History:retain(e) C.timeline_retain(self.timeline, e) end

---@param e ffi.cdata* struct event *
function History:release(e) C.timeline_release(self.timeline, e) end

return history
