-- SPDX-License-Identifier: GPL-2.0-only
--- The pairs that a script looks at because they took too long or too short (`than` and `lower` of PairsConfig), if
--- BPF programs find the pairs: they send just those (bpf/gen/sent_pairs.lua). The event that ends a pair is
--- captured, and brings the first one along.
local capture = require 'bpf.gen.capture'
local captures = require 'bpf.ways.capture'
local dispatch = require 'bindings.view.dispatch'
local ffi = require 'ffi'
local kernel_outliers = require 'bpf.gen.sent_pairs'
local pair_keys = require 'bindings.pairs.keys'
local pair_view = require 'bindings.pairs.pair'
local route = require 'bpf.plan.route'
local views = require 'bindings.view.views'

local C = ffi.C
local bxor, cast, bits64 = require('bit').bxor, ffi.cast, ffi.typeof 'uint64_t'
local batch = views.batch
local outliers = {}

local MOST_NS = 2 ^ 53
-- Before, and since a fix that older kernels got in 2025, sched_process_exit follows perf's report of the exit.
local EXIT_IN_ORDER = 6.016

--- Returns whether a script only looks at outliers.
---@param config PairsConfig
---@return boolean
function outliers.are_wanted(config) return config.pair ~= nil and (config.than or config.lower) ~= nil end

local UNITS = { { 1e9, 's' }, { 1e6, 'ms' }, { 1e3, 'us' } }

local function time_text(ns)
  for _, unit in ipairs(UNITS) do
    if ns >= unit[1] then return ('%g %s'):format(ns / unit[1], unit[2]) end
  end
  return ('%g ns'):format(ns)
end

--- Returns which pairs are outliers, in words.
local function describe(config)
  local parts = {}
  if config.than then parts[1] = 'over ' .. time_text(config.than) end
  if config.lower then parts[#parts + 1] = 'under ' .. time_text(config.lower) end
  return 'those ' .. table.concat(parts, ' or ')
end

--- The outliers of a matcher's pairs.
---@class Outliers
---@field plan OutlierPlan
---@field unkept integer pairs whose first event was overwritten
---@field sent integer pairs that came
---@field pairs KernelPairs
---@field run Run
---@field exit? PairRule of the exits of tasks, if they end pairs
local Outliers = {}
Outliers.__index = Outliers

outliers.verb = 'pair'
outliers.name, outliers.does, outliers.lacks = 'outliers', 'paired', { 'reload', 'newest', 'each_event' }

--- Adds what is sent and shown to the facts of an offer.
---@param config PairsConfig
---@param facts table
---@param index_of table<Event, integer>
---@param run Run
function outliers.facts(config, facts, index_of, run)
  local seen, instance = {}, run.per_thread and 'tid' or 'cpu'
  facts.sends, facts.shows = {}, {}
  if run.serving and not config.pass then table.insert(facts.asks, '--serve keeps each pair') end
  for i = #config.stages, 1, -1 do -- what an event is in the last of its stages counts
    local finds = i > 1 or config.cycle or false
    for _, event in ipairs(config.stages[i]) do
      local is_sent = not seen[event] and not event.is_derived and (finds or not config.pass)
      seen[event] = true
      if event.is_task_event then
        facts.exit, facts.passes = finds and not config.cycle and 'last' or 'first', config.pass ~= nil
      elseif is_sent then
        local task = pair_keys.running_task(event, instance)
        table.insert(facts.sends, { event = index_of[event], is_other = task and task.target and not finds or false })
      end
    end
  end
  local function show(list)
    for _, event in ipairs(list) do
      if event.is_task_event then
        facts.hidden = event.alias
      elseif index_of[event] then
        table.insert(facts.shows, { event = index_of[event], only_details = not event.owner.describe })
      end
    end
  end
  if not config.details then return end
  for _, stage in ipairs(config.stages) do show(stage) end
  show(config.others or {})
end

--- Returns why programs cannot send the outliers of a matcher; nil if they can.
---@param facts Facts
---@param offer OfferFacts
---@param calls integer see captures.refuses()
---@return string?
function outliers.refuses(facts, offer, calls)
  local reason = offer.asks[1]
  if reason then return reason end
  if offer.exit == 'first' then return 'exit is not captured' end
  if offer.exit and not offer.passes and facts.kernel.release < EXIT_IN_ORDER then
    return 'perf may report an exit before a program sees it'
  end
  for _, one in ipairs(offer.sends) do
    reason = captures.refuses(facts, facts.events[one.event], calls, one.is_other)
    if reason then return reason end
  end
  if offer.hidden then return ('%s is not captured'):format(offer.hidden) end
  for _, one in ipairs(offer.shows) do
    local event = facts.events[one.event]
    if event.gate then return ('%s is not captured'):format(event.name) end
    reason = captures.refuses(facts, event, calls, false, one.only_details)
    if reason then return reason end
  end
end

--- Completes the plan of the programs.
---@param config PairsConfig
---@param plan PairPlan
---@param by_event table<Event, PairRule>
---@param kernel InKernel
---@return Outliers
function outliers.new(config, plan, by_event, kernel)
  local self = setmetatable({ config = config, by_event = by_event, ending = {}, unkept = 0, sent = 0,
    run = kernel.run }, Outliers)
  local size = 0
  for event, rule in pairs(by_event) do
    local finds = rule.stage > 0 or plan.cycle
    if event.is_task_event then
      self.exit = rule
    elseif not event.is_derived and (finds or not config.pass) then
      if not config.pass then size = math.max(size, kernel_outliers.size(event.list)) end
      rule.sample = { event = event.name, list = event.list, type = tonumber(event.request.attr.config),
        class = event.class }
      if rule.ends and rule.ends.awake then rule.ends.awake.sample = rule.sample end
      if finds then table.insert(self.ending, event) end
    end
  end
  table.sort(self.ending, function(a, b) return a.class < b.class end)
  local rings = kernel.captures:open(#self.ending)
  for i, event in ipairs(self.ending) do
    local sample = by_event[event].sample
    sample.number, sample.id = rings.events + i - 1, kernel.captures:new_id()
  end
  local function limit(ns) return ns and math.min(math.max(ns, 0), MOST_NS) end
  local than, lower = limit(config.than), limit(config.lower)
  self.plan = { than = than and math.floor(than), lower = lower and math.ceil(lower), rings = rings,
    size = not config.pass and size or nil, number = rings.events, leaves = self.exit ~= nil }
  plan.outliers = self.plan
  return self
end

--- Lets the session read the events that end outliers.
---@param kernel InKernel
---@param programs table<Event, Descriptor>
function Outliers:settle(kernel, programs)
  for _, event in ipairs(self.ending) do
    kernel.captures:read(event, programs[event], self.by_event[event].sample.id)
    route.write(event.route, { sent = describe(self.config) .. (self.config.pass and ' are passed on' or ' are sent') })
    event.request.captured.is_early = self.plan.is_early and 1 or 0
  end
end

--- Returns a function that reads a pair's value from its first event; nil if pairs have none.
local function value_reader(config)
  if not config.value then return nil end
  local offsets, types = {}, {}
  for _, event in ipairs(config.stages[1]) do
    local field = event.fields[config.value]
    offsets[event.class] = field.offset
    types[event.class] = ffi.typeof(('%sint%d_t *'):format(views.has(field, 'SIGNED') and '' or 'u', 8 * field.size))
  end
  return function(first) return cast(types[first.class], first.raw + offsets[first.class])[0] end
end

local OUTLIER, EXIT = ffi.typeof 'struct outlier *', tonumber(C.EVENT_EXIT)
local FIXED = ffi.offsetof('struct outlier', 'raw')

--- Returns a function that passes the outliers among n events to the script, as Consumer.feed.
---@param run Run
---@return fun(consumer: Consumer, list: ffi.cdata*, n: integer)
function Outliers:feed(run)
  local any, pair = run.services.any, self.config.pair
  local sizes = ffi.new('uint32_t[?]', C.EVENT_CLASSES) -- of the fields before a struct outlier, by class
  -- Of first events, by tag: what they are in the pair, and what they are by their fields.
  local classes, samples = ffi.new 'uint16_t[16]', ffi.new 'uint16_t[16]'
  for event, rule in pairs(self.by_event) do
    if rule.tag then classes[rule.tag], samples[rule.tag] = event.class, rule.sample.class end
  end
  for _, event in ipairs(self.ending) do sizes[event.class] = capture.raw_size(event.list) end
  local buffer, first = pair_view.buffer(1, any), ffi.new 'struct event'
  local p, stopped, value_of = buffer.out[0], run.stopped, value_reader(self.config)
  local function tell(e, o, i)
    if o.tag == 0 then
      self.unkept = self.unkept + 1
      return
    end
    p.ns, p.key, p.kind = tonumber(o.ns), o.key, o.kind
    local time = e.class == EXIT and tonumber(o.time - C.session_exact_time(run.session, 0)) or e.time - p.ns
    p.first_time, p.second_time = time, e.time
    p.first_class, p.second_class, p.second = classes[o.tag], e.class, i
    p.first_tid, p.first_cpu = o.tid, tonumber(o.cpu)
    first.time, first.class, first.period, first.ring, first.key = time, samples[o.tag], 1, e.ring, o.key
    first.pid, first.tid, first.cpu = o.pid, o.tid, tonumber(o.cpu)
    first.raw, first.raw_size, first.flags = o.raw, o.raw_size, 0
    p.first_event = first
    if value_of then p.first_value = value_of(first) end
    -- With the number of its batch, as in dispatch: a script must not keep it.
    pair(buffer.view(0), cast(any, bxor(cast(bits64, e), batch[0])))
    buffer.expire(0)
  end
  local exit, room = self.exit, ffi.new('uint64_t[?]', (FIXED + self.plan.size) / 8 + 1)
  local left = cast(OUTLIER, room)
  return function(_, list, n)
    for i = 0, n - 1 do
      local e = list + i
      local size = sizes[e.class]
      if size > 0 and e.raw_size >= size + FIXED and stopped[0] == 0 then
        self.sent = self.sent + 1
        tell(e, cast(OUTLIER, e.raw + size), i)
      elseif exit and e.class == EXIT and stopped[0] == 0 and self.pairs:take_left(exit, e.tid, left) then
        tell(e, left, i)
      end
    end
  end
end

--- What became of the pairs over a limit.
---@class OutlierCounts
---@field found number that programs have found
---@field over? number that their sums have over the same limit; nil: they have another one, or none
---@field sent number that came
---@field rest number that came before the run had begun, or after its end
---@field lost number of records that programs could not write
---@field rejected table<string, number> see Figures
---@field may_be_left? boolean the exit of a task leaves pairs to the reader, which may be gone

--- Returns the account of the outliers: each one that programs have found has come. The sums count them, too, by other
--- code.
---@param n OutlierCounts
---@return Figures
function outliers.figures(n)
  local read, doubt = n.sent, nil
  for _, count in pairs(n.rejected) do read = read + count end
  if n.over and n.over ~= n.found then
    doubt = ('%d outliers were sent, but %d are in the sums'):format(n.found, n.over)
  end
  return { name = 'outliers', way = outliers.name, fired = n.found, lost = n.lost, rest = n.rest, read = read,
    per = n.lost == 0 and 1 or nil, is_exact = not n.may_be_left, by = 'programs', fate = 'they did not come',
    rejected = n.rejected, doubt = doubt, filters = {} }
end

--- Returns what became of the records that programs have sent.
---@param run Run
---@param ending Event[] whose programs send them
---@param sent number that came
---@return OutlierCounts without `found`
function outliers.counts(run, ending, sent)
  local got, n = ffi.new 'struct session_account', { sent = sent, rest = 0, lost = 0, rejected = {} }
  for _, event in ipairs(ending) do
    C.session_read_account(run.session, event.class, got)
    n.lost, n.rest = tonumber(got.lost), n.rest + tonumber(got.early + got.rest)
    for by, count in pairs(dispatch.rejected(event.class)) do n.rejected[by] = (n.rejected[by] or 0) + count end
  end
  return n
end

--- Returns the account; nil: a limit of events has ended the run before all came.
---@return Figures?
function Outliers:figures()
  local run, config, of = self.run, self.config, self.pairs
  if run.stopped[0] ~= 0 then return end
  local n = outliers.counts(run, self.ending, self.sent)
  n.found, n.may_be_left = of:stats().outliers, self.exit ~= nil
  local is_same = config.than and not config.lower and of.plan.threshold == math.floor(config.than)
  n.over = is_same and of.over or nil
  return outliers.figures(n)
end

return outliers
