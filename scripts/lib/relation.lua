-- SPDX-License-Identifier: GPL-2.0-only
--- What the profilers of two related events have in common: their options, the sorting of their
--- events, and a run in which an analysis sees each pair. An analysis is a table:
---
---   pair = function(p, second) ... end -- each pair; and latencies, both as in lib.pairs
---   report = function(out) ... end     -- at each interval and at the end
---   lost = function(p, time)           -- optional: starts that a loss drops, and
---   left = function(p)                 -- those that still wait at the end, as in lib.pairs
---   stop = function(out) ... end       -- optional: after the last report
---   keep = true                        -- optional: pair needs p.first_event
---   details = ...                      -- optional: of lib.detail
local heatmap = require 'lib.heatmap'
local pairs = require 'lib.pairs'

local relation = {}

relation.attributes = { 'key', 'printkey', 'role', 'untraced', 'trigger' }

relation.options = {
  than = { type = 'duration', help = 'print the events of longer latencies, and count them' },
  only_than = { type = 'duration', help = 'the same, and print the table only if there were any' },
  lower = { type = 'duration', help = 'print the events of shorter latencies' },
  perins = { type = 'flag', help = 'a row for each key, CPU or thread' },
  detail = {
    type = 'string',
    argument = 'LIST',
    optional_value = '',
    help = 'with these events also those between them, or what LIST says: -N before the first, +N after the second,'
      .. ' samecpu, samepid, sametid or samekey of both (or of 1 or 2), hide<N those that follow fast;'
      .. ' with -v the lines say which of these they are',
  },
  heatmap = heatmap.option,
  cycle = { type = 'flag', help = 'the last stage is followed by the first' },
}

--- Some of the common options.
---@param ... string names
function relation.pick(...)
  local picked = {}
  for _, name in ipairs { ... } do
    picked[name] = relation.options[name]
  end
  return picked
end

---@class RelatedEvents
---@field stages Event[][]
---@field others Event[] untraced ones
---@field triggers Event[]
---@field has? fun(key: integer): boolean which keys take part
---@field key? string what the key is called, nil: the cpu or thread

--- Sorts the events of -e: each group is a stage.
---@param opt { event: Event[][], key?: string, cycle?: boolean }
---@return RelatedEvents? events
---@return string? message
function relation.events(opt)
  local found = { stages = {}, others = {}, triggers = {} }
  local keyed, keyless
  for i, group in ipairs(opt.event) do
    found.stages[i] = {}
    for _, event in ipairs(group) do
      if event.attrs.trigger then table.insert(found.triggers, event) end
      if event.attrs.untraced then
        table.insert(found.others, event)
      else
        table.insert(found.stages[i], event)
        if event.attrs.key or opt.key then keyed = keyed or event else keyless = keyless or event end
      end
    end
    if #found.stages[i] == 0 then return nil, ('-e number %d: all of its events are untraced'):format(i) end
  end
  local least = opt.cycle and 1 or 2
  if #found.stages < least then
    return nil, ('a latency needs two stages or more, and there is %d -e'):format(#found.stages)
  end
  if keyed and keyless then
    return nil, ('%s has a key and %s has none: they never match; give all events one, with key= or -k')
      :format(keyed.name, keyless.name)
  end
  found.key = keyed and (keyed.attrs.key or opt.key)
  return found
end

local COUNTS = {
  { 'dropped', '%d starts dropped: the events that end them may be lost' },
  { 'evicted', '%d starts dropped: too many wait for the events that end them' },
  { 'unkept', '%d events are missing from details: there were too many to keep' },
}

--- Says what has been given up since the last time.
local function tell_losses(name, out, stats, told)
  for _, count in ipairs(COUNTS) do
    local what, format = count[1], count[2]
    local n = stats[what] - (told[what] or 0)
    if n > 0 then out:warn(('%s: ' .. format):format(name, n)) end
    told[what] = stats[what]
  end
end

--- Has each event printed before it is handled, as -vv asks for.
---@param handlers table
---@param events Event[]
---@param out Output
function relation.print_each(handlers, events, out)
  for _, event in ipairs(events) do
    local handle = handlers[event]
    local function print_and_handle(ev)
      out:print_event(ev)
      if handle then handle(ev) end
    end
    if not event.is_task_event then handlers[event] = print_and_handle end
  end
end

--- Handlers that let an analysis see all pairs.
---@param name string of the profiler
---@param analysis table see above
---@param found RelatedEvents
---@param opt table
---@param out Output
---@return table handlers, Feed matcher
function relation.run(name, analysis, found, opt, out)
  local told = {}
  local matcher
  local function report()
    analysis.report(out)
    tell_losses(name, out, matcher:stats(), told)
  end
  matcher = pairs.new {
    stages = found.stages,
    others = found.others,
    key = opt.key,
    cycle = opt.cycle,
    keep = analysis.keep,
    has = found.has,
    details = analysis.details,
    pair = analysis.pair,
    latencies = analysis.latencies,
    lost = analysis.lost,
    left = analysis.left,
    triggers = found.triggers,
    triggered = function(ev)
      report()
      out:print_event(ev)
    end,
  }
  local function stop()
    matcher:finish()
    report()
    if analysis.stop then analysis.stop(out) end
    if opt.verbose > 0 then
      local s = matcher:stats()
      out:warn(('%s: %d pairs; %d starts replaced by a later one, %d dropped for lost events, %d evicted,'
        .. ' %d still waiting; %d ends without a start, %d of another stage; %d unnecessary wakeups'):format(name,
        s.pairs, s.replaced, s.dropped, s.evicted, s.stored, s.unstarted, s.mismatched, s.unneeded))
    end
  end
  local handlers = { matcher, interval = report, stop = stop }
  if opt.verbose > 1 then
    for _, stage in ipairs(found.stages) do relation.print_each(handlers, stage, out) end
    relation.print_each(handlers, found.others, out)
  end
  return handlers, matcher
end

return relation
