-- SPDX-License-Identifier: GPL-2.0-only
--- Options and runs of profilers of pairs, such as multi-trace. A run passes pairs to an analysis, which is a table:
---
---   report = function(out) ... end     -- called at each interval and at the end
---   draw = function(out) ... end       -- optional: prints what there is so far, on a terminal
---   stop = function(out) ... end       -- optional: called after the last report
---   pair = function(p, second) ... end -- optional, as the following: see PairsConfig of lib.pairs
---   than = 1e6
---   lower = 1e3
---   latencies = hists
---   rows = rows
---   lost = function(p, time) ... end
---   left = function(p) ... end
---   keep = true
---   value = 'id'
---   details = details
---   pass = session.gate()              -- in a source, which prints nothing
---
--- Ready-made analyses are lib.delay, lib.pairing, lib.memprof and lib.syscalls.
local heatmap = require 'lib.heatmap'
local pair_keys = require 'bindings.pairs.keys'
local pairs = require 'lib.pairs'
local public_event = require 'bindings.view.public_event'
local tables = require 'lib.table'
local values = require 'bindings.options.values'

local relation = {}

--- The event attributes that such a profiler declares.
relation.attributes = { 'key', 'printkey', 'role', 'untraced', 'trigger' }

--- The declarations of the common options: than, only_than, lower, perins, variance, detail, heatmap and
--- cycle.
relation.options = {
  than = { type = 'duration', help = 'print the events of longer latencies, and count them' },
  only_than = { type = 'duration', help = 'like --than, but print the table only if there are longer latencies' },
  lower = { type = 'duration', help = 'print the events of shorter latencies' },
  perins = { type = 'flag', help = 'print a row per key, CPU or thread' },
  variance = tables.variance_option,
  detail = {
    type = 'string',
    needs = { 'both_switches' },
    argument = 'LIST',
    values = { 'samecpu', 'samekey', 'samepid', 'sametid' },
    optional_value = '',
    help = 'with --than or --lower also print the events between the two. LIST: samecpu, samepid, sametid, samekey:'
      .. ' only those that share it with the first or second event (1 or 2: with this one); -N, +N: also those up to N'
      .. ' before the first or after the second; hide<N: count those that follow within N. -v prints why each is shown',
  },
  heatmap = heatmap.option,
  cycle = { type = 'flag', help = 'let the first stage follow the last' },
}

--- Returns whether an option needs the two sides of a switch as events of their own: it shows, counts or sends events
--- that are not in a pair.
---@param opt table
---@return boolean
function relation.needs_both_switches(opt) return values.given(opt, 'both_switches') ~= nil end

--- Returns some of the common options: `options = relation.pick('than', 'detail')`.
---@param ... string names of the options
---@return table<string, table> options
function relation.pick(...)
  local picked = {}
  for _, name in ipairs { ... } do
    picked[name] = relation.options[name]
  end
  return picked
end

---@class RelatedEvents
---@field stages Event[][]
---@field others Event[] events that only details show (attribute untraced)
---@field triggers Event[] events with the attribute trigger
---@field default_key? string key of the events without key=
---@field has? fun(key: integer): boolean selects keys, as in lib.pairs
---@field has_targets? boolean as in lib.pairs
---@field handlers? table<Event, function> as in lib.pairs
---@field ends? table[] events that end a wait without a pair, as in lib.pairs
---@field key? string title of the key; nil: the key is the CPU or thread

--- Returns what is wrong if some events have a key and others have none.
---@param keyed? Event one with a key
---@param keyless? Event one without
---@return string? message
---@package
function relation.mismatch(keyed, keyless)
  return keyed and keyless and ('%s has a key and %s has none: they never match; give all events a key with key= or -k')
    :format(keyed.name, keyless.name) or nil
end

--- Returns the events of -e by their role. Each -e is a stage.
---@param opt table
---@param key? string key of the events without key= if there is no -k
---@return RelatedEvents? events nil: see message
---@return string? message
function relation.events(opt, key)
  opt = values.optional(opt)
  local found = { stages = {}, others = {}, triggers = {}, default_key = opt.key or key }
  local keyed, keyless
  for i, group in ipairs(opt.event) do
    found.stages[i] = {}
    for _, event in ipairs(group) do
      if event.attrs.trigger then table.insert(found.triggers, event) end
      if event.attrs.untraced then
        table.insert(found.others, event)
      else
        table.insert(found.stages[i], event)
        if event.attrs.key or found.default_key then keyed = keyed or event else keyless = keyless or event end
      end
    end
    if #found.stages[i] == 0 then return nil, ('-e number %d: all events are untraced'):format(i) end
  end
  if #found.stages < (opt.cycle and 1 or 2) then
    return nil, ('a latency needs two stages or more, not %d: give an -e for each'):format(#found.stages)
  end
  local message = relation.mismatch(keyed, keyless)
  if message then return nil, message end
  found.key = keyed and (keyed.attrs.key or found.default_key)
  return found
end

local COUNTS = {
  { 'dropped', '%d starts dropped: the events that end them may be lost' },
  { 'evicted', '%d starts dropped: too many were waiting for their end' },
  { 'unkept', '%d events are missing from details: there were too many to keep' },
}

--- Warns about starts and events dropped since the last call.
local function report_losses(name, out, stats, reported)
  for _, count in ipairs(COUNTS) do
    local counter, format = count[1], count[2]
    local n = stats[counter] - (reported[counter] or 0)
    if n > 0 then out:warn(('%s: ' .. format):format(name, n)) end
    reported[counter] = stats[counter]
  end
end

--- Returns a key that is computed of a thread of this machine or recording; nil if there is none.
local function computed_thread(found)
  for _, stage in ipairs(found.stages) do
    for _, event in ipairs(stage) do
      local key = not public_event.real(event).machine and (event.attrs.key or found.default_key)
      if key and (key:find '%f[%w_]common_pid%f[^%w_]' or key:find '%f[%w_]_tid%f[^%w_]') then return key end
    end
  end
end

--- Follows threads to their new ids when they execute a program, or counts them if the matcher cannot.
---@return fun() warn to be called at the end
local function follow_ids(name, config, found, handlers, out, session)
  local moved, key, stages = 0, computed_thread(found), public_event.real(found.stages)
  local function are_threads(per_thread)
    return pair_keys.are_threads({ stages = stages, key = config.key }, per_thread)
  end
  local is_followed, changes, is_foreign = are_threads(session.instance_field == '_tid'), nil, nil
  if is_followed or key then changes, is_foreign = session.id_changes(found.stages[1][1]) end
  if is_followed and is_foreign and not are_threads(false) then is_followed, key = false, '_tid' end
  if is_followed then
    config.id_changes = changes
  elseif changes then
    handlers[changes] = function() moved = moved + 1 end
  end
  return function()
    if moved == 0 then return end
    out:warn(('%s: %d threads got the id of their process, because they executed a program: their pairs with the key %s'
      .. ' may be missing or wrong; those with the key common_pid are followed'):format(name, moved, key))
  end
end

--- Returns the handlers of a profiler, which pass all pairs to an analysis.
---@param name string name of the profiler
---@param analysis table see above
---@param found RelatedEvents
---@param opt table
---@param out Output
---@param session? Session without it, pairs of a thread are not followed to its new id
---@return table handlers
---@return Feed matcher
function relation.run(name, analysis, found, opt, out, session)
  opt = values.optional(opt)
  local reported, config, matcher = {}, {}, nil
  local function report()
    analysis.report(out)
    report_losses(name, out, matcher:stats(), reported)
  end
  for _, setting in ipairs(pairs.SETTINGS) do
    config[setting] = analysis[setting]
    if config[setting] == nil then config[setting] = found[setting] end
  end
  config.key, config.cycle = found.default_key, opt.cycle
  local handlers, warn_of_ids = {}, nil
  if session and not config.id_changes then
    warn_of_ids = follow_ids(name, config, found, handlers, out, session)
  end
  config.triggers = not analysis.pass and found.triggers or {}
  config.triggered = #config.triggers > 0 and function(ev)
    report()
    out:print_event(ev)
  end or nil
  matcher = pairs.new(config)
  local function stop()
    matcher:finish()
    report()
    if analysis.stop then analysis.stop(out) end
    if warn_of_ids then warn_of_ids() end
    if opt.verbose > 0 then
      local s = matcher:stats()
      out:warn(('%s: %d pairs; %d starts replaced by a later one, %d dropped for lost events, %d evicted,'
        .. ' %d still waiting; %d ends without a start, %d of another stage; %d unnecessary wakeups'):format(name,
        s.pairs, s.replaced, s.dropped, s.evicted, s.stored, s.unstarted, s.mismatched, s.unneeded))
    end
  end
  handlers[1], handlers.interval, handlers.stop = matcher, report, stop
  if analysis.draw then
    function handlers.draw() analysis.draw(out) end
  end
  return handlers, matcher
end

return relation
