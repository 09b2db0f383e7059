-- SPDX-License-Identifier: GPL-2.0-only
--- History: the recent events of the stream, which details print between the events of pairs
--- (runtime/relations/history.h).
local ffi = require 'ffi'
local pair = require 'bindings.pairs.pair'
local views = require 'bindings.view.views'

local C = ffi.C

---@class History
---@field classes table<integer, Event> the kept events, by class
---@field missing_until number ns: events older than this may be missing
local History = {}
History.__index = History

local history = { class = History }

---@param timeline ffi.cdata* holds the copies
---@param list Event[] events to keep
---@param max_batch integer maximum number of events added at once
---@param max_bytes number limit above which the oldest events are evicted
---@return History
function history.new(timeline, list, max_batch, max_bytes)
  local self = setmetatable({
    classes = {},
    copies = ffi.new('struct event *[?]', max_batch),
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

--- Keeps the events of a batch. copies[i] is then the copy of events[i], or NULL.
---@param list ffi.cdata* struct event *
---@param n integer
function History:add(list, n)
  self._list, self._n = list, n
  C.history_add(self._history, list, n, self.copies)
end

--- Ends the batch: its copies may be dropped from now on.
function History:end_batch() self._n = 0 end

--- Returns the copy of a handler's event; the event itself if it could not be copied.
---@param ev Ev
---@return ffi.cdata* e struct event *
---@return boolean is_copy
function History:copy(ev)
  local e = views.event(ev, 'details:show')
  local i = e - self._list
  if not (i >= 0 and i < self._n and self._list + i == e) then
    error('details:show takes the event of the running handler, not a kept one', 3)
  end
  local copy = self.copies[i]
  if copy == nil then return e, false end
  return copy, true
end

--- Returns the first event of a pair; nil if it was not kept.
---@param p Pair|{ first_event: ffi.cdata* }
---@return ffi.cdata*? struct event *
function History.first(_, p)
  if type(p) == 'table' then return p.first_event end
  local first = pair.of(p, 'details:show').first_event
  return first ~= nil and first or nil
end

---@return integer number of kept events
function History:count() return C.history_count(self._history) end

---@param time number ns; older events are no longer needed
function History:forget(time) C.history_forget(self._history, time) end

--- Updates missing_until.
---@return number evicted events dropped because of the limit
function History:check()
  C.history_read_stats(self._history, self._stats)
  self.missing_until = self._stats.evicted_until
  return tonumber(self._stats.evicted)
end

--- Returns the number of kept events that are older than a time, which is the index of the first one that is not.
--- forget() changes the indexes.
---@param time number
---@return integer
function History:find(time) return C.history_find(self._history, time) end

--- Returns kept event i as a view, from 0; nil after the last one.
---@param i integer
---@return any ev
---@return Event? event
function History:at(i)
  local e = C.history_at(self._history, i)
  if e == nil then return end
  return self:view(e)
end

--- Returns a kept event as a view.
---@param e ffi.cdata* struct event *
---@return any ev
---@return Event event
function History:view(e)
  local event = self.classes[e.class]
  return ffi.cast(event.view.type, e), event
end

--- Returns the index of a kept event; if it was evicted, the index of the first event that is not older.
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

--- Retains an event until it is released, even if it is forgotten.
---@param e ffi.cdata* struct event *, a kept event
function History.retain(_, e) C.timeline_retain(e) end

---@param e ffi.cdata* struct event *
function History:release(e) C.timeline_release(self.timeline, e) end

return history
