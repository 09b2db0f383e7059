-- SPDX-License-Identifier: GPL-2.0-only
--- Keeps the events of a stream as long as details (lib.detail) may show them: while something that
--- began with one of them has not ended. It stands among a profiler's handlers, which then see each
--- event when all of its batch is kept.
local ffi = require 'ffi'
local histories = require 'bindings.pairs.history'
local pair_keys = require 'bindings.pairs.keys'
local public_event = require 'bindings.view.public_event'

ffi.cdef 'long sysconf(int name);'

local C = ffi.C
local recall = {}

local MAX_BATCH = 1024 -- what session_next() gives at most
local KEEP_BYTES = 256 * 2 ^ 20
-- What details may take: about a hundred thousand events of each cpu. Memory that is touched for the first time
-- costs more than the copies in it, so it is not more.
local HISTORY_BYTES = math.min(KEEP_BYTES, 16 * 2 ^ 20 * tonumber(C.sysconf(84))) -- _SC_NPROCESSORS_ONLN
local MIN_HISTORY = 4096 -- events that are kept without asking who needs them

---@class Recall
---@field history History
local Recall = {}
Recall.__index = Recall

---@class RecallConfig
---@field events Event[] what is kept
---@field details Details
---@field oldest fun(): number time of the oldest event whose end is waited for, math.huge without one
---@field key? string expression of events that have none of their own

--- Where copies of events are.
---@return ffi.cdata* struct timeline *
function recall.timeline() return ffi.gc(C.timeline_new(KEEP_BYTES), C.timeline_free) end

---@param config RecallConfig
---@return Recall
function recall.new(config)
  config.events = public_event.real(config.events)
  pair_keys.check_context(config, config.events, config.details.settings.key)
  return setmetatable({ config = config }, Recall)
end

--- Called by the driver when the session has started.
---@param run table
---@param timeline? ffi.cdata* where others keep copies too
function Recall:open(run, timeline)
  local config = self.config
  self.history = histories.new(timeline or recall.timeline(), config.events, MAX_BATCH, HISTORY_BYTES)
  local instance = C.session_per_thread(run.session) ~= 0 and 'tid' or 'cpu'
  config.details:open(self.history,
    pair_keys.reader(config, config.events, instance, run.services.expression_env))
end

--- Keeps the events of a batch, before anybody handles them.
function Recall:prepare(list, n) self.history:add(list, n) end

--- The copy of an event that a handler was given, which stays until it is released; nil where there was no
--- room for one.
---@return ffi.cdata*? copy struct event *
function Recall:retain(ev)
  local copy, is_copy = self.history:copy(ev)
  if not is_copy then return end
  self.history:retain(copy)
  return copy
end

function Recall:release(copy) self.history:release(copy) end

--- Called when the events of a batch have been handled: what neither something unfinished nor the details
--- need is forgotten. What is unfinished is asked for when there are twice as many events as were needed,
--- for all of it must be looked at.
function Recall:feed(list, n)
  if n == 0 then return end
  local history, details, now = self.history, self.config.details, list[n - 1].time
  details:advance(now)
  if history:count() < (self.limit or 0) then return end
  history:forget(details:needs(math.min(self.config.oldest(), now)))
  self.limit = math.max(2 * history:count(), MIN_HISTORY)
end

--- To be called when the stream has ended: shows what waits for later events.
function Recall:finish()
  if self.history then self.config.details:advance(math.huge) end
end

--- How many events could not be kept, or not long enough.
---@return integer
function Recall:missing() return self.history and self.history:check() or 0 end

return recall
