-- SPDX-License-Identifier: GPL-2.0-only
--- KeptEvents: keeps copies of events as long as details (lib.detail) may print them, that is until everything that
--- started with one of them has ended. It is a consumer. Handlers see an event after its whole batch has been copied.
local facade = require 'bindings.base.facade'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local histories = require 'bindings.pairs.history'
local pair_keys = require 'bindings.pairs.keys'
local public_event = require 'bindings.view.public_event'

local C = ffi.C
local kept_events = { BYTES = 256 * 2 ^ 20 } -- of all copies

-- About a hundred thousand events per CPU. Touching new memory costs more than copying into it, so the limit is low.
local HISTORY_BYTES = math.min(kept_events.BYTES, 16 * 2 ^ 20 * tonumber(libc.sysconf(libc.SC_NPROCESSORS_ONLN)))
local MIN_HISTORY = 4096 -- number of events before feed() first checks which ones are needed

---@class KeptEvents
---@field history History
local KeptEvents = {}
KeptEvents.__index = KeptEvents

---@class KeptEventsConfig
---@field events Event[] events to keep
---@field details Details
---@field oldest fun(): number time of the oldest unfinished start in ns, math.huge if there is none
---@field key? string key expression of events without their own

--- Creates the timeline that holds the copies.
---@return ffi.cdata* struct timeline *
function kept_events.timeline() return ffi.gc(C.timeline_new(kept_events.BYTES), C.timeline_free) end

---@param config KeptEventsConfig
---@return KeptEvents
function kept_events.new(config)
  config.events = public_event.real(config.events)
  config.details = facade.object(config.details) or error('details are those of lib.detail', 3)
  pair_keys.check_context(config, config.events, config.details.settings.key)
  return setmetatable({ config = config }, KeptEvents)
end

--- Called by the driver after the session has started.
---@param run table
---@param timeline? ffi.cdata* an existing timeline to share
function KeptEvents:open(run, timeline)
  local config = self.config
  self.history = histories.new(timeline or kept_events.timeline(), config.events, C.BATCH_MAX, HISTORY_BYTES)
  local instance = C.session_per_thread(run.session) ~= 0 and 'tid' or 'cpu'
  config.details:open(self.history,
    pair_keys.reader(config, config.events, instance, run.services.expression_env))
end

--- Copies the events of a batch before they are handled.
function KeptEvents:prepare(list, n) self.history:add(list, n) end

--- Retains and returns the copy of a handler's event; nil if it could not be copied.
---@return ffi.cdata*? copy struct event *, valid until it is released
function KeptEvents:retain(ev)
  local copy, is_copy = self.history:copy(ev)
  if not is_copy then return end
  self.history:retain(copy)
  return copy
end

function KeptEvents:release(copy) self.history:release(copy) end

--- Called after a batch has been handled: drops the events that neither an unfinished start nor the details need.
--- Finding the oldest unfinished start walks over all of them, so this happens only when the number of kept events has
--- doubled since the last time.
function KeptEvents:feed(list, n)
  if n == 0 then return end
  local history, details, now = self.history, self.config.details, list[n - 1].time
  history:end_batch()
  details:advance(now)
  if history:count() < (self.limit or 0) then return end
  history:forget(details:needs(math.min(self.config.oldest(), now)))
  self.limit = math.max(2 * history:count(), MIN_HISTORY)
end

--- Must be called after the stream has ended: prints the details that waited for later events.
function KeptEvents:finish()
  if self.history then self.config.details:advance(math.huge) end
end

--- Returns the number of events that could not be kept, or not long enough.
---@return integer
function KeptEvents:missing() return self.history and self.history:check() or 0 end

--- Returns what a profiler puts among its handlers.
---@type fun(kept: KeptEvents): any
kept_events.handler = facade.class('kept', KeptEvents, {})

return kept_events
