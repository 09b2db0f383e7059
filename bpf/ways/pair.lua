-- SPDX-License-Identifier: GPL-2.0-only
--- Pairs that BPF programs find (bpf/gen/pairs.lua) instead of the matcher: if nothing is needed but sums and
--- histograms of the times, or rows of them, and pairs that took too long or too short.
local asm = require 'bpf.gen.asm'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local intern = require 'bindings.base.intern'
local events = require 'bindings.select.events'
local kernel_pairs = require 'bpf.gen.pairs'
local outliers = require 'bpf.ways.outlier'
local pair_keys = require 'bindings.pairs.keys'
local pair_rows = require 'bindings.pairs.rows'
local probe = require 'bpf.gen.probe'
local public_event = require 'bindings.view.public_event'
local windows = require 'bpf.ways.window'

local C = ffi.C
local pair = {}

-- What programs cannot do, by what a matcher asks for.
local ASKS = {
  { 'details', 'details are printed' },
  { 'pair', 'the script looks at each pair' },
  { 'keep', 'events are kept' },
  { 'lost', 'the script looks at starts' },
  { 'left', 'the script looks at starts' },
  { 'max_keys', 'the number of waiting starts is limited' },
  { 'some_keys', 'only some keys are wanted' },
  { 'drops_others', 'profscript itself drops the events that are not about the target' },
  { 'each_pair', 'the script looks at each pair' },
  { 'triggers', 'an interval ends just where its trigger is among the events' },
  { 'starts', 'the script looks at starts' },
  { 'others', 'other events are read, too' },
}
-- What they can do if it is about outliers. No start is lost there.
local BY_OUTLIERS = { keep = true, pair = true, details = true, lost = true }

pair.verb = 'pair'
pair.name, pair.does, pair.lacks = 'pair', 'paired', { 'reload', 'newest', 'each_event' }

--- Returns why programs cannot find the pairs of a matcher; nil if they can.
---@param offer OfferFacts
---@return string?
function pair.refuses(_, offer) return offer.asks[1] end

--- The events of a matcher.
---@class PairOffer : Offer
---@field gate? Instance
---@field passed integer of a gate: events that came
---@field outliers? Outliers
---@field windows? Windows
local PairOffer = { attributes = { key = true, printkey = true, role = true, untraced = true } }
PairOffer.__index = PairOffer

--- Returns the offer of a matcher's events.
---@param config PairsConfig
---@param gate? Instance
---@return PairOffer
function pair.new(config, gate)
  local self = setmetatable({ config = config, gate = gate, events = {}, handlers = config.handlers, passed = 0,
    spares = { config.id_changes },
    way = outliers.are_wanted(config) and 'outliers' or 'pair' }, PairOffer)
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      if not event.is_task_event and not event.is_derived then table.insert(self.events, event) end
    end
  end
  for _, event in ipairs(config.details and config.others or {}) do table.insert(self.events, event) end
  return self
end

--- Returns the reasons why programs cannot do what the matcher asks for.
local function asks_of(self)
  local config, asks, is_about_outliers = self.config, {}, self.way == 'outliers'
  for _, ask in ipairs(ASKS) do
    local name = ask[1]
    if config[name] and not (BY_OUTLIERS[name] and is_about_outliers) then asks[name] = true end
  end
  local run = self.gate and self.gate.run
  asks.details = config.details ~= nil and not is_about_outliers
  asks.some_keys = config.has ~= nil and not config.has_targets
  asks.drops_others = run ~= nil and run.everywhere and run.per_thread and not config.has
  asks.each_pair = self.gate and not config.pass or not (self.gate or config.latencies or config.rows)
  asks.triggers = #(config.triggers or {}) > 0
  asks.starts = config.lost ~= nil and not config.details
  asks.others = not config.details and #(config.others or {}) > 0
  local reasons = {}
  for _, ask in ipairs(ASKS) do reasons[#reasons + 1] = asks[ask[1]] and ask[2] or nil end
  return reasons
end

--- Returns the facts of the offer, see OfferFacts.
---@param index_of table<Event, integer>
---@param run Run
---@return table
function PairOffer:facts(index_of, run)
  local facts = { asks = asks_of(self), keeps = {} }
  if self.way == 'outliers' then outliers.facts(self.config, facts, index_of, run) end
  for _, event in ipairs(self.config.details and self.config.others or {}) do
    table.insert(facts.keeps, index_of[event])
  end
  return facts
end

local function compiled(event, text, what) return events.compile(event, text, what or 'key', 'number') end

--- Returns the key of an event, and whether it is a thread.
---@param instance 'cpu'|'tid' default key
local function key_of(config, event, instance)
  if event.is_task_event then return 'tid', true end
  local key = pair_keys.compile(config, event)
  if not key then return instance, instance == 'tid' end
  if key.type == 'string' then asm.refuse 'its keys are strings' end
  return key, pair_keys.is_thread(config, event)
end

--- Returns the plan of the programs, and the rules by event.
local function make_plan(self, switch, run)
  local config, instance = self.config, run.per_thread and 'tid' or 'cpu'
  local plan = { stages = #config.stages, cycle = config.cycle or false, rules = {}, sides = switch.sides }
  local by_event, all_cpus, all_threads = {}, true, true
  local rows = config.rows
  for i, stage in ipairs(config.stages) do
    for j, event in ipairs(stage) do
      local key, is_thread = key_of(config, event, instance)
      local rule = { stage = i - 1, place = j - 1, key = key, role = pair_keys.role(event),
        is_derived = event.is_derived }
      all_cpus, all_threads = all_cpus and key == 'cpu', all_threads and is_thread
      if i == 1 and config.value then rule.value = compiled(event, config.value) end
      if rows and i == #config.stages then
        rule.same = rows.same and event.fields[rows.same] and { value = compiled(event, rows.same), any = rows.any }
        rule.failed = rows.failed and pair_rows.failed(rows, event)
      end
      local task = pair_keys.running_task(event, instance)
      if task and task.target then
        rule.wakeup = { task = compiled(event, task.task), target = compiled(event, task.target),
          waker = compiled(event, task.waker) }
      elseif task then
        rule.switch = { task = compiled(event, task.task), before = compiled(event, task.before) }
      end
      table.insert(plan.rules, rule)
      by_event[event] = rule
    end
  end
  for _, one in ipairs(config.ends or {}) do
    local event = public_event.real(one.event)
    local rule = by_event[event] or asm.refuse('%s belongs to no stage', event.name)
    rule.ends = { key = compiled(event, one.key), bits = compiled(event, one.bits), mask = one.mask,
      awake = one.awake and by_event[public_event.real(one.awake)] }
  end
  if config.has then plan.threads = run.in_kernel:threads() end
  plan.are_threads = all_threads
  plan.direct = all_cpus and switch.nr_cpus or all_threads and run.in_kernel:thread_places() or nil
  if config.pass then
    plan.only_outliers = true
    return plan, by_event
  end
  plan.threshold = tonumber(C.hist_set_threshold(config.latencies or rows.hists))
  if rows and not (all_cpus and rows.kinds and rows.by[1] == 'key') then -- a CPU has cells of its own
    plan.rows = { by = rows.by, most = rows.ids.max, kinds = rows.kinds,
      buckets = rows.kinds ~= nil or run.serving ~= nil } -- served histograms are shown, even if only sums are printed
  end
  return plan, by_event
end

--- Loads the programs. Refuses what they cannot do.
---@param kernel InKernel
function PairOffer:load(kernel)
  local plan, by_event
  if self.gate then
    plan, by_event = self.gate:on_its_own(make_plan, self, kernel.switch, kernel.run)
  else
    plan, by_event = make_plan(self, kernel.switch, kernel.run)
  end
  if self.way == 'outliers' then
    self.outliers = outliers.new(self.config, plan, by_event, kernel)
  end
  self.programs = {}
  self.pairs, self.rules = kernel_pairs.new(plan, kernel.switch.nr_cpus), by_event
  if self.outliers then self.outliers.pairs = self.pairs end
  if self.config.details then
    self.windows, plan.outliers.is_early = windows.new(self.config, kernel), true
  end
  -- As perf does: of the events of a tracepoint, the last one is the first to see it.
  local last_first = { unpack(self.events) }
  table.sort(last_first, function(a, b) return a.class > b.class end)
  for _, event in ipairs(last_first) do
    local rule = by_event[event]
    local write = self.windows and self.windows:writer(event, not rule)
    local body = rule and self.pairs:body(rule, true, probe.is_alone(event.name))
    local loaded = kernel:probe(event, body and write and function(a, source, places)
      write(a, source, places)
      body(a, source, places)
    end or body or write)
    if body then self.programs[event] = loaded end
  end
  for event, rule in pairs(by_event) do
    if event.is_task_event then
      kernel:probe_exit(self.pairs:body(rule, false, probe.is_alone(probe.EXIT)))
    end
  end
  if plan.are_threads then kernel:probe_id_changes(self.pairs:move_body()) end
end

function PairOffer:settle(kernel)
  if self.outliers then self.outliers:settle(kernel, self.programs) end
  if self.windows then self.windows:settle() end
end

function PairOffer:start() self.has_started = true end

--- Returns the number of a row's histogram. key: as of KernelRows:take().
local function number_of(rows, key, kind)
  local ids = rows.ids
  local id
  if not key then
    id = ids.max
  elseif rows.by[2] then
    id = ids.id(tonumber(key[0]), tonumber(key[1]))
  elseif rows.by[1] == 'key' then
    id = ids.id(ffi.cast('uint64_t', key[0])) -- keys are unsigned
  else
    id = ids.id(tonumber(key[0]))
  end
  return kind and id * rows.kinds + kind or id, id
end

--- Adds what was counted to the script's histograms or rows.
---@param side integer
---@param is_last boolean
function PairOffer:turn(side, is_last)
  if self.windows then
    self.windows:poll(is_last)
    self.windows:warn()
  end
  local config, rows = self.config, self.config.rows
  local function check_added(code)
    if code == 0 then return end
    failure.raise('cannot add latencies: the set of histograms is too small, or out of memory')
  end
  local function add(hists, i, sums, buckets)
    check_added(C.hist_set_add_sums(hists, i, sums, buckets))
  end
  self.pairs:take(side, function(kind, sums, buckets, cpu)
    if not rows then return add(config.latencies, kind, sums, buckets) end
    add(rows.hists, rows.ids.id(cpu + 0ULL) * rows.kinds + kind, sums, buckets)
  end, function(key, kind, sums, buckets)
    local i, id = number_of(rows, key, kind)
    if not key then intern.add_overflow(rows.ids, tonumber(sums.count)) end
    if rows.failures then rows.failures[id] = rows.failures[id] + tonumber(sums.failed) end
    add(rows.hists, i, sums, buckets)
  end, function(key, kind, bucket, count)
    check_added(C.hist_set_add_bucket(rows.hists, number_of(rows, key, kind), bucket, count))
  end)
end

--- Returns the number of events, without those that came here.
function PairOffer:count()
  return self:_counted() - self.passed - (self.outliers and self.outliers.sent or 0)
end

--- Returns the number of all events that programs have seen.
---@package
function PairOffer:_counted() return self.pairs:stats().events + (self.windows and self.windows:count() or 0) end

function PairOffer:by_event()
  local found = {}
  for event, rule in pairs(self.rules) do found[event] = self.pairs:events(rule) end
  return found
end

function PairOffer:sees_all() return true end -- luacheck: no self

--- Returns the accounts of the pairs, of those that are sent, and of the events that are kept for details.
---@return Figures? ends
---@return Figures? sent
---@return Figures? kept
function PairOffer:figures()
  local outlier, window = self.outliers, self.windows
  return self:_ends(), outlier and outlier:figures(), window and window:figures(self:_counted())
end

function PairOffer:running() return self:_ends() end

--- Returns the account of the pairs: each event that may end one did so, or is counted by why it did not. nil: the
--- pairs are not added up, or some come without an event.
---@package
---@return Figures?
function PairOffer:_ends()
  -- While programs run, what is read later may be more. Each event counts before it is found to have no start.
  local plan, stats, ends, is_exact = self.pairs.plan, self.pairs:stats(true), 0, true
  if plan.only_outliers then return end
  for event, rule in pairs(self.rules) do
    if event.is_task_event then return end
    ends = ends + (rule.finds and self.pairs:events(rule) or 0)
    local key = event.attrs.key or self.config.key or ''
    -- An expression may have no value.
    is_exact = is_exact and not (rule.role or rule.wakeup or plan.threads or key:find '[^%w_]')
  end
  return { name = 'ends of pairs', way = self.way, fired = ends, lost = 0,
    read = stats.pairs + stats.unstarted + stats.mismatched, per = 1, is_exact = is_exact, by = 'programs',
    fate = 'they are in no sum', rejected = {}, filters = {} }
end

--- Returns the counters, as Feed:stats() does.
function PairOffer:stats()
  local stats = self.pairs:stats()
  stats.unkept = stats.unkept + (self.outliers and self.outliers.unkept or 0)
    + (self.windows and self.windows:unkept() or 0)
  return stats
end

--- Returns as Feed:overdue() does.
function PairOffer:overdue(event, ns)
  local rule = self.rules[event]
  return rule and rule.tag and self.pairs:overdue(rule, ns) or 0
end

return pair
