-- SPDX-License-Identifier: GPL-2.0-only
--- Pairs of events: an event and the next event of a later stage that has the same key.
---
---   local matcher = pairs.new {
---     stages = { { issue }, { complete } },
---     pair = function(p, second) ... end, -- called for each pair
---   }
---   return { matcher, stop = function() matcher:finish() end }
---
--- Memory is bounded: at most two million starts wait for their end, and 256 MiB of kept events.

-- Each batch takes one generated loop that writes the key column, one call of the C matcher
-- (runtime/relations/pairs.h), and one loop over the pairs that it has found.
local addresses = require 'bindings.print.addresses'
local check = require 'bindings.base.check'
local doubts = require 'bindings.pairs.doubts'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local pair_keys = require 'bindings.pairs.keys'
local pair_rows = require 'bindings.pairs.rows'
local event_class = require 'bindings.select.event'
local kept_events = require 'bindings.pairs.kept_events'
local pair_view = require 'bindings.pairs.pair'
local public_event = require 'bindings.view.public_event'
local units = require 'bindings.base.units'
local views = require 'bindings.view.views'

local C = ffi.C
local bxor, cast, bits64 = require('bit').bxor, ffi.cast, ffi.typeof 'uint64_t'
local batch = views.batch
local pairs_ = {}

local TASK_KEYS = { common_pid = true, pid = true, next_pid = true, prev_pid = true, tid = true }
local PAIR_SIZE = ffi.sizeof 'struct pair'

--- A pair. It is valid until the function that it was passed to returns.
---@class Pair
---@field ns number time from the first event to the second
---@field key integer64
---@field kind integer which two events, from 0: ordered by stage, then by first event, then by second event
---@field first_time number ns
---@field second_time number ns
---@field first_class integer `class` of the first event
---@field second_class integer
---@field first_tid integer
---@field first_cpu integer
---@field first_value integer with `value`: that field of the first event
---@field first_event? Ev the first event, with `keep`; nil if there was no room to keep it

---@class PairsEnd
---@field event Event
---@field key string
---@field bits string
---@field mask integer
---@field awake? Event an event of the first of two stages with the same key. It is not read itself: each `event`
--- without the bits counts as one, unless its key is 0 or less

--- Rows of pairs that are added up without a function of the script.
---@class PairRows
---@field by string[] of 'key' and 'value' (which is p.first_value): what all pairs of a row share
---@field ids Keys of lib.intern: gives the rows their numbers
---@field hists HistSet receives the ns of each pair, at the number of its row
---@field kinds? integer number of kinds of pairs: at the number of its row * kinds + p.kind
---@field same? string a field of second events: a pair counts only if it equals p.first_value, or `any`
---@field any? integer
---@field failed? string C expression over second events with that field: whether the pair failed
---@field failures? Array counts the failed pairs by row

---@class PairsConfig
---@field stages Event[][] at least two, or one with `cycle`; the events of a stage are alternatives
---@field key? string C expression for events without key=; default: the CPU or thread, if no event has a key
---@field cycle? boolean the first stage follows the last
---@field keep? boolean keep first events for `p.first_event`
---@field value? string an integer field of first events, for `p.first_value`; cheaper than `keep`
---@field has? fun(key: integer): boolean selects keys; only if the key of each event is one of its fields
---@field has_targets? boolean `has` selects the target threads of the run, as that of lib.threads does: only with
--- keys that are threads, and without `ends.awake`
---@field handlers? table<Event, fun(ev: Ev)> those of the script's handlers of the stages' events that need not be
--- called if all pairs are found in the kernel, where no event is lost
---@field max_keys? integer maximum number of waiting starts
---@field others? Event[] events outside the stages, for details
---@field details? Details of lib.detail: keeps the events that it can still show
---@field pair? fun(p: Pair, second: Ev) called for each pair, or with `than` or `lower` for some
---@field pass? fun(ev: Ev) what session.gate() has returned: passes on the second events of these pairs, instead of
--- `pair`. If this is all that the source does, programs find the pairs in the kernel
---@field than? number ns: `pair` is called for pairs that took longer
---@field lower? number ns: `pair` is called for pairs that took less
---@field latencies? HistSet receives the ns of each pair at the index p.kind; cheaper than a function
---@field rows? PairRows receives the ns of each pair in its row; `pair` is only called for those that count
---@field lost? fun(p: Pair, time: number) called for each start dropped because of lost events; time is when the loss
--- begins
---@field left? fun(p: Pair) called by finish() for each start that still waits
---@field ends? PairsEnd[] events that end the wait of a key
--- without a pair: an event with one of the bits of mask in its field `bits` drops the start whose key is in its field
--- `key`, such as that of a task which a switch puts to sleep
---@field id_changes? Event what session.id_changes() has returned, if all keys are threads: starts go on with their
--- threads
---@field triggers? Event[]
---@field triggered? fun(ev: Ev) called at each trigger, after all pairs completed before it

--- The settings of new(), by name.
---@package
pairs_.SETTINGS = { 'stages', 'key', 'cycle', 'keep', 'value', 'has', 'has_targets', 'handlers', 'max_keys', 'others',
  'details', 'pair', 'pass', 'than', 'lower', 'latencies', 'rows', 'lost', 'left', 'ends', 'id_changes', 'triggers',
  'triggered' }

--- Finds pairs. A script returns it as a list entry of its handlers.
---@class Feed : Consumer
local Feed = {}
Feed.__index = Feed

--- The exit of a task as an event of a stage. Its key is the thread.
pairs_.task_end = public_event.of(event_class.of_task('exit', tonumber(C.EVENT_EXIT)))

--- Returns a copy of the configuration with the host's events.
local function with_real_events(config)
  local own = {}
  for name, value in pairs(config) do own[name] = value end
  for _, name in ipairs { 'stages', 'others', 'triggers', 'id_changes' } do own[name] = public_event.real(own[name]) end
  own.handlers = {}
  for event, handler in pairs(config.handlers or {}) do own.handlers[public_event.real(event)] = handler end
  if own.rows ~= nil then own.rows = pair_rows.checked(own) end
  if own.pass ~= nil then
    if own.pass ~= views.pass then error('pairs.new: pass is what session.gate() has returned', 3) end
    own.pair = function(_, second) views.pass(second) end
  end
  local hists = own.latencies or own.rows and own.rows.hists
  if hists and not ffi.istype('struct hist_set *', hists) then
    error('pairs.new: latencies must be a set of lib.hist', 3)
  end
  return own
end

--- Returns whether a pair is one that the script looks at.
local function outlier_test(config)
  local longest, shortest = config.than or math.huge, config.lower or -1
  if not config.than and not config.lower then longest = -1 end
  return function(ns) return ns > longest or ns < shortest end
end

local public -- creates the facade of a feed

--- Creates a matcher.
---@param config PairsConfig
---@return Feed
function pairs_.new(config)
  check.is(config, 'table', 'pairs.new takes settings')
  check.settings(config, pairs_.SETTINGS, 'pairs.new')
  check.is(config.stages, 'table', 'pairs.new takes stages')
  if config.than ~= nil then check.is(config.than, 'number', 'than of pairs.new is a time') end
  if config.lower ~= nil then check.is(config.lower, 'number', 'lower of pairs.new is a time') end
  local min = config.cycle and 1 or 2
  if #config.stages < min then
    error(('pairs.new takes at least %d stages, not %d'):format(min, #config.stages), 2)
  end
  for i, stage in ipairs(config.stages) do
    if type(stage) ~= 'table' or stage.class then
      error(('pairs.new: stage %d is not a list of events: stages = { { first }, { second } }'):format(i), 2)
    end
    for _, event in ipairs(stage) do
      if type(event) ~= 'table' then
        error(('pairs.new: stage %d has %s, which is not an event of session.event() or of an option'):format(i,
          check.shown(event)), 2)
      end
    end
  end
  config = with_real_events(config)
  for _, one in ipairs(config.ends or {}) do
    if one.awake then public_event.real(one.awake):derive() end
  end
  local feed = setmetatable({ config = config, wants = {} }, Feed)
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      if event.is_task_event then feed.wants[#feed.wants + 1] = event.class end
    end
  end
  feed.has_string_keys = pair_keys.check(config)
  if config.details then
    feed.kept = kept_events.new { events = feed:events(), details = config.details, key = config.key,
      oldest = function() return C.pairs_oldest(feed.matcher) end }
  else
    pair_keys.check_context(config, config.others or {})
  end
  return public(feed)
end

--- Offers to find the pairs in the kernel.
---@param run Run
---@param gate? Instance the source whose condition this is
---@package
function Feed:offer(run, gate)
  self.offered = run.in_kernel:offer_pairs(self.config, gate)
end

local function ignore() end

--- Returns all events, those outside the stages last.
---@return Event[]
---@package
function Feed:events()
  local list = {}
  for _, stage in ipairs(self.config.stages) do
    for _, event in ipairs(stage) do list[#list + 1] = event end
  end
  for _, event in ipairs(self.config.others or {}) do list[#list + 1] = event end
  return list
end

--- Returns whether the key of all events is their CPU or thread.
---@package
function Feed:per_instance()
  for _, stage in ipairs(self.config.stages) do
    for _, event in ipairs(stage) do
      if event.attrs.key or self.config.key then return false end
    end
  end
  return true
end

--- Returns the expression of the first event's key, nil if that is its CPU or thread.
---@package
function Feed:key_source()
  local first = self.config.stages[1][1]
  return first.attrs.key or self.config.key
end

--- Returns the printable value of a key: the result of printkey=, the string if keys are strings, or the number.
---@param key integer64 `p.key`
---@return number|integer64|string
function Feed:key_value(key)
  if self.print_key then return self.print_key(key) end
  if self.has_string_keys then return self.strings:part(tonumber(key), 1) or '(other)' end
  return key
end

--- Creates the matcher: C knows the classes, and where their keys and values are.
local function open_matcher(self)
  local config = self.config
  local function is_signed(field) return views.has(field, 'SIGNED') and 1 or 0 end
  self.matcher = ffi.gc(C.pairs_new(ffi.new('struct pairs_config', {
    stages = #config.stages,
    cycle = config.cycle and 1 or 0,
    per_instance = self.loss_is_local and 1 or 0,
    max_keys = config.max_keys or 0,
    keep = self.timeline,
  })), C.pairs_free)
  for i, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      C.pairs_add_class(self.matcher, event.class, i - 1)
      local field = pair_keys.plain_field(config, event)
      if field then C.pairs_set_key(self.matcher, event.class, field.offset, field.size, is_signed(field)) end
    end
  end
  for _, event in ipairs(config.value and config.stages[1] or {}) do
    local field = event.fields[config.value]
    C.pairs_set_value(self.matcher, event.class, field.offset, field.size, is_signed(field))
  end
  pair_keys.set_id_changes(self.matcher, config)
  pair_keys.set_running(self.matcher, config, config.others or {}, self.instance)
  for _, one in ipairs(config.ends or {}) do
    local event = public_event.real(one.event)
    local key, bits = event.fields[one.key], event.fields[one.bits]
    C.pairs_set_end(self.matcher, event.class, key.offset, bits.offset, bits.size, one.mask)
    if one.awake then C.pairs_set_awake(self.matcher, event.class, public_event.real(one.awake).class) end
  end
end

--- Lets an export and the page have the pairs.
local function open_outputs(self)
  local config, run = self.config, self.run
  local function key_text(key)
    local value = self:key_value(key)
    return ('%s %s'):format(self:key_source() or '', type(value) == 'string' and value or units.number(value))
  end
  self.export = run.export and run.export:slices({
    by = self:per_instance() and self.instance or TASK_KEYS[self:key_source()] and 'tid' or 'key',
    key_text = key_text,
    has_addresses = self.print_key == addresses.text,
    value = config.value,
  }, config.stages)
  self.keep_pairs = run.serving and run.serving:keep_pairs(config.stages, key_text)
end

--- Called by the driver after the session has started.
---@param is_gate? boolean it decides what a source passes on, and shows nothing
---@package
function Feed:open(run, is_gate)
  local config = self.config
  self.run = run
  self.strings = run.services.strings
  self.expression_env = run.services.expression_env
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      self.print_key = self.print_key or run.services.key_printer(event, event.attrs.key or config.key)
    end
  end
  if self:is_in_kernel() then
    self.feed = self.offered.outliers and self.offered.outliers:feed(run) or ignore
    local windows = self.offered.windows
    if windows then
      windows:open()
      function self.poll() windows:poll() end
    end
    return
  end
  self.instance = C.session_per_thread(run.session) ~= 0 and 'tid' or 'cpu'
  self.keys = pair_keys.branches(config, self.instance, self.expression_env)
  if config.keep or config.details then
    self.timeline = kept_events.timeline()
  end
  self.loss_is_local = self:per_instance() and C.session_loss_is_local(run.session) ~= 0
  open_matcher(self)
  if self.kept then
    self.kept:open(run, self.timeline)
    C.pairs_use_copies(self.matcher, self.kept.history.copies)
  end
  self.any = run.services.any
  self.buffer = pair_view.buffer(C.BATCH_MAX + 1, self.any) -- the last element is for each_stored()
  self.out = self.buffer.out
  self.kinds = ffi.cast('uint32_t *', ffi.cast('char *', self.out) + ffi.offsetof('struct pair', 'kind'))
  self.durations = ffi.cast('double *', ffi.cast('char *', self.out) + ffi.offsetof('struct pair', 'ns'))
  self.pauses = self:pauses_by_class()
  self.doubts = doubts.new(doubts.of_session(run.session), config.stages)
  if not is_gate then open_outputs(self) end
  self.is_wanted = outlier_test(config)
  self.add_row = config.rows and pair_rows.adder(config.rows, config, self.expression_env)
end

--- Returns the functions to call at events of some classes, after all earlier events have been handled; nil if
--- there are none. A batch is split at such events.
---@return table<integer, fun(e: ffi.cdata*)>?
---@package
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

--- Feeds a part of a batch, in which only the first event may be a pause.
---@package
function Feed:take(list, n)
  local config, kept, out = self.config, self.kept, self.out
  local pair, add_row, latencies, any = config.pair, self.add_row, config.latencies, self.any
  local view, expire, is_wanted = self.buffer.view, self.buffer.expire, self.is_wanted
  if kept then kept:prepare(list, n) end
  local found = C.pairs_feed(self.matcher, list, n, out)
  if found < 0 then failure.raise('out of memory for pairs') end
  if n > 0 then self.last_time = list[n - 1].time end
  if latencies and C.hist_set_add_column(latencies, self.kinds, self.durations, PAIR_SIZE, found) ~= 0 then
    failure.raise('cannot add latencies: the set of histograms is too small, or out of memory')
  end
  if self.doubts then self.doubts:count(out, found) end
  if self.export then self.export(out, found, list) end
  if self.keep_pairs then self.keep_pairs(out, found) end
  if pair or add_row then
    local stopped = self.run.stopped
    for i = 0, found - 1 do
      if stopped[0] == 0 and (add_row or is_wanted(out[i].ns)) then
        local p, second = view(i), list + out[i].second
        if (not add_row or add_row(p, cast(any, second)) and is_wanted(out[i].ns)) and pair then
          -- With the number of its batch, as in dispatch: a script must not keep it.
          pair(p, cast(any, bxor(cast(bits64, second), batch[0])))
        end
      end
      expire(i)
    end
  end
  if kept then kept:feed(list, n) end
end

--- Called by the driver with each batch.
---@package
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

--- Calls a function with each waiting start, oldest first.
---@param call fun(p: Pair, time?: number)
---@param time? number ns
---@param key? integer only starts with this key
---@package
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
    self.out[C.BATCH_MAX] = list[i]
    call(self.buffer.view(C.BATCH_MAX), time)
    self.buffer.expire(C.BATCH_MAX)
  end
end

--- Passes the starts that a loss invalidates to config.lost. The matcher drops them when it is fed the EVENT_LOST.
---@package
function Feed:lose(e)
  local is_one = self.loss_is_local and (e.cpu >= 0 or e.tid >= 0)
  self:each_stored(self.config.lost, e.time, is_one and pair_keys.of_loss(e) or nil)
end

--- Prints the details that still wait and passes waiting starts to `left`. Must be called at the start of `stop`.
function Feed:finish()
  if not self.matcher then return end
  if self.kept then self.kept:finish() end
  if self.config.left then self:each_stored(self.config.left) end
  local doubt = self.doubts and self.doubts:text()
  if doubt then self.run.out:warn(('%s: %s'):format(self.run.name, doubt)) end
end

--- Returns whether programs find the pairs in the kernel. Known once the events have started.
---@return boolean
function Feed:is_in_kernel() return self.offered ~= nil and self.offered.has_started == true end

--- Returns the counters of the run so far:
--- - `pairs`: pairs found
--- - `replaced`: starts replaced by a later one with the same key
--- - `dropped`: starts dropped because of lost events
--- - `ended`: starts dropped by an event of `ends`
--- - `evicted`: starts dropped because too many waited
--- - `stored`: starts that still wait
--- - `unstarted`: ends that found no start
--- - `mismatched`: ends that removed a start they make no pair with
--- - `unneeded`: wakeups that no switch follows, because the task was already running
--- - `unreported`: switches that are missing, as a CPU switches from another task than it has switched to; nil
---   if the script's `handlers` look for them
--- - `unkept`: events missing from details
---@return table<string, number> counters
function Feed:stats()
  if self:is_in_kernel() then return self.offered:stats() end
  if not self.matcher then error('pairs:stats: the events have not started', 3) end
  local s = ffi.new 'struct pairs_stats'
  C.pairs_read_stats(self.matcher, s)
  local result = { unkept = self.kept and self.kept:missing() or 0 }
  for _, name in ipairs { 'pairs', 'replaced', 'unstarted', 'mismatched', 'dropped', 'ended', 'unneeded', 'evicted',
    'stored', 'unreported' } do
    result[name] = tonumber(s[name])
  end
  if next(self.config.handlers) then result.unreported = nil end
  return result
end

--- Returns the number of starts that had waited for longer than a time at the last event.
---@param event Event the event that started them
---@param ns number
---@return integer
function Feed:overdue(event, ns)
  local real, n, pair = public_event.one(event, 'pairs:overdue'), 0, ffi.new 'struct pair'
  check.is(ns, 'number', 'pairs:overdue takes a time')
  if self:is_in_kernel() then return self.offered:overdue(real, ns) end
  if not self.matcher then error('pairs:overdue: the events have not started', 3) end
  local at = C.pairs_next_stored(self.matcher, 0, pair)
  while at ~= 0 do
    if pair.first_class == real.class and self.last_time - pair.first_time > ns then n = n + 1 end
    at = C.pairs_next_stored(self.matcher, at, pair)
  end
  return n
end

public = facade.class('pairs', Feed, { 'finish', 'is_in_kernel', 'key_value', 'overdue', 'stats' })

return pairs_
