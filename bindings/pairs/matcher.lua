-- SPDX-License-Identifier: GPL-2.0-only
--- Feeds events to the C pair matcher (runtime/relations/pairs.h) and its pairs to Lua: one generated loop
--- that writes the key column, one call, one loop over the pairs. Scripts use it through lib.pairs.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local pair_keys = require 'bindings.pairs.keys'
local recall = require 'bindings.pairs.kept_events'
local views = require 'bindings.view.views'

local C = ffi.C
local pairs_ = {}

local MAX_BATCH = 1024 -- what session_next() gives at most
local PAIR_SIZE = ffi.sizeof 'struct pair'

---@class Feed : Consumer
local Feed = {}
Feed.__index = Feed

---@class FeedConfig
---@field stages Event[][] events of each stage
---@field key? string expression of events that have none of their own
---@field cycle? boolean
---@field keep? boolean first events are kept, so that they can be printed
---@field has? fun(key: integer): boolean keys that take part, of events whose key is a field
---@field max_keys? integer starts that wait at most
---@field others? Event[] events of no stage
---@field details? Details keeps all events and is asked for its needs, see lib/detail.lua
---@field pair? fun(pair: ffi.cdata*, second: ffi.cdata*) struct pair *, struct event *
---@field latencies? native.Hists gets the ns of each pair under its kind
---@field lost? fun(pair: ffi.cdata*, time: number) a start that a loss drops, which begins at that time
---@field left? fun(pair: ffi.cdata*) a start that still waits when all is over
---@field triggers? Event[]
---@field triggered? fun(ev: any) called at each of them, when all that was before has been seen

--- What may stand in a stage for the end of a task: its key is the thread.
pairs_.TASK_END = { name = 'exit', alias = 'exit', class = C.EVENT_EXIT, is_life = true, attrs = {}, fields = {} }

---@param config FeedConfig
---@return Feed
function pairs_.new(config)
  local feed = setmetatable({ config = config, wants = {} }, Feed)
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      if event.is_life then feed.wants[#feed.wants + 1] = event.class end
    end
  end
  feed.has_string_keys = pair_keys.check(config)
  if config.details then
    feed.recall = recall.new { events = feed:events(), details = config.details, key = config.key,
      oldest = function() return C.pairs_oldest(feed.matcher) end }
  else
    pair_keys.check_context(config, config.others or {})
  end
  return feed
end

--- All events, those of no stage last.
---@return Event[]
function Feed:events()
  local list = {}
  for _, stage in ipairs(self.config.stages) do
    for _, event in ipairs(stage) do list[#list + 1] = event end
  end
  for _, event in ipairs(self.config.others or {}) do list[#list + 1] = event end
  return list
end

--- Whether the key is the cpu or thread that an event came from: no event has another.
function Feed:per_instance()
  for _, stage in ipairs(self.config.stages) do
    for _, event in ipairs(stage) do
      if event.attrs.key or self.config.key then return false end
    end
  end
  return true
end

--- What the script's user meant by a key: what printkey= makes of it, the string where keys are
--- strings, else the number.
---@param key number|ffi.cdata*
---@return number|ffi.cdata*|string
function Feed:key_value(key)
  if self.print_key then return self.print_key(key) end
  if self.has_string_keys then return self.strings:part(tonumber(key), 1) or '(other)' end
  return key
end

--- Called by the driver when the session has started.
function Feed:open(run)
  local config = self.config
  self.run = run
  self.strings = run.services.strings
  self.expression_env = run.services.expression_env
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      self.print_key = self.print_key or run.services.key_printer(event)
    end
  end
  self.instance = C.session_per_thread(run.session) ~= 0 and 'tid' or 'cpu'
  self.keys, self.unneeded = pair_keys.branches(config, config.others or {}, self.instance, self.expression_env)
  if config.keep or config.details then
    self.timeline = recall.timeline()
  end
  self.loss_is_local = self:per_instance() and C.session_loss_is_local(run.session) ~= 0
  local c = ffi.new('struct pairs_config', {
    stages = #config.stages,
    cycle = config.cycle and 1 or 0,
    per_instance = self.loss_is_local and 1 or 0,
    max_keys = config.max_keys or 0,
    keep = self.timeline,
  })
  self.matcher = ffi.gc(C.pairs_new(c), C.pairs_free)
  for i, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      C.pairs_add_class(self.matcher, event.class, i - 1)
      local field = pair_keys.plain_field(config, event)
      if field then
        C.pairs_set_key(self.matcher, event.class, field.offset, field.size, views.has(field, 'SIGNED') and 1 or 0)
      end
    end
  end
  if self.recall then
    self.recall:open(run, self.timeline)
    C.pairs_use_copies(self.matcher, self.recall.history.copies)
  end
  self.out = ffi.new('struct pair[?]', MAX_BATCH)
  self.kinds = ffi.cast('uint32_t *', ffi.cast('char *', self.out) + ffi.offsetof('struct pair', 'kind'))
  self.durations = ffi.cast('double *', ffi.cast('char *', self.out) + ffi.offsetof('struct pair', 'ns'))
  self.pauses = self:pauses_by_class()
end

--- Classes at which a batch is cut in two, so that what they call sees all that was before them;
--- nil where there are none.
---@return table<integer, fun(e: ffi.cdata*)>?
function Feed:pauses_by_class()
  local config, pauses, any = self.config, {}, false
  if config.lost then
    pauses[C.EVENT_LOST], any = function(e) self:lose(e) end, true
  end
  for _, event in ipairs(config.triggers or {}) do
    pauses[event.class], any = function(e)
      self.run:report_at(e.time, config.triggered, ffi.cast(event.view.type, e))
    end, true
  end
  return any and pauses or nil
end

--- Events of a batch, none of which is a pause unless it is the first.
function Feed:take(list, n)
  local config, kept, out = self.config, self.recall, self.out
  local pair, latencies = config.pair, config.latencies
  if kept then kept:prepare(list, n) end
  local found = C.pairs_feed(self.matcher, list, n, out)
  if found < 0 then failure.raise('out of memory for pairs') end
  if latencies then latencies:add_column(self.kinds, self.durations, PAIR_SIZE, found) end
  if pair and not kept then
    for i = 0, found - 1 do
      local p = out + i
      pair(p, list + p.second)
    end
  elseif pair then
    for i = 0, found - 1 do
      local p = out + i
      pair(p, kept:at(p.second))
    end
  end
  if kept then kept:feed(list, n) end
end

function Feed:feed(list, n)
  local pauses, from = self.pauses, 0
  if pauses then
    for i = 0, n - 1 do
      local pause = pauses[list[i].class]
      if pause then
        self:take(list + from, i - from)
        pause(list + i)
        from = i
      end
    end
  end
  self:take(list + from, n - from)
end

--- Calls a function with each start that waits, oldest first.
---@param call fun(pair: ffi.cdata*, time?: number)
---@param time? number ns
---@param key? integer only this one
function Feed:each_stored(call, time, key)
  local list, order, n = ffi.new('struct pair[?]', self:stats().stored + 1), {}, 0
  local at = C.pairs_next_stored(self.matcher, 0, list)
  while at ~= 0 do
    if not key or list[n].key == key then
      order[n + 1] = n
      n = n + 1
    end
    at = C.pairs_next_stored(self.matcher, at, list + n)
  end
  table.sort(order, function(a, b) return list[a].first_time < list[b].first_time end)
  for _, i in ipairs(order) do
    call(list + i, time)
  end
end

--- The starts that a loss drops; the matcher drops them when it is fed the event.
function Feed:lose(e)
  local instance = e.cpu >= 0 and e.cpu or e.tid
  self:each_stored(self.config.lost, e.time, self.loss_is_local and instance >= 0 and instance or nil)
end

--- To be called when the stream has ended, before the last report.
function Feed:finish()
  if not self.matcher then return end
  if self.recall then self.recall:finish() end
  if self.config.left then self:each_stored(self.config.left) end
end

--- Counters of the matcher so far.
---@return table<string, number> by the names of struct pairs_stats, with unneeded and unkept
function Feed:stats()
  local s = ffi.new 'struct pairs_stats'
  C.pairs_read_stats(self.matcher, s)
  local result = { unneeded = self.unneeded[0], unkept = self.recall and self.recall:missing() or 0 }
  for _, name in ipairs { 'pairs', 'replaced', 'unstarted', 'mismatched', 'dropped', 'evicted', 'stored' } do
    result[name] = tonumber(s[name])
  end
  return result
end

return pairs_
