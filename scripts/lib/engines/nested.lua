-- SPDX-License-Identifier: GPL-2.0-only
--- Nested call analysis (nested-trace): a call tree or a table of functions, with details of long calls.
local addresses = require 'bindings.print.addresses'
local calltree = require 'lib.calltree'
local detail = require 'lib.detail'
local heat = require 'lib.pair_heatmap'
local latency = require 'lib.latency'
local relation = require 'lib.relation'
local kept_events = require 'bindings.pairs.kept_events'

local nested = {}

---@class NestedSettings
---@field name string name of the profiler
---@field opt table
---@field out Output
---@field session Session
---@field events NestedEvents

---@class NestedEvents
---@field functions Event[][] call and return event of each function
---@field others Event[] events that only details show
---@field key? string title of the key; nil: the key is the CPU or thread

--- Sorts the events of -e into the two of each function, and the untraced ones.
---@param opt table
---@return NestedEvents? events nil: see message
---@return string? message
function nested.events(opt)
  local found, keyed, keyless = { functions = {}, others = {} }, nil, nil
  for i, group in ipairs(opt.event) do
    local traced = {}
    for _, event in ipairs(group) do
      table.insert(event.attrs.untraced and found.others or traced, event)
    end
    if #traced ~= 2 then
      return nil, ('-e number %d: a function needs two events, its entry and its exit, not %d')
        :format(i, #traced)
    end
    for _, event in ipairs(traced) do
      if event.attrs.key or opt.key then keyed = event else keyless = event end
    end
    found.functions[i] = traced
  end
  if #found.functions == 0 then return nil, 'no functions; select one with -e ENTRY,EXIT' end
  local message = relation.mismatch(keyed, keyless)
  if message then return nil, message end
  found.key = keyed and (keyed.attrs.key or opt.key)
  return found
end

--- Returns a function that returns an event's key, and whether keys are strings.
local function key_of(event, opt, session)
  local text = event.attrs.key or opt.key
  if text then
    local expression = session.expression(event, text)
    return expression.value, expression.type == 'string'
  end
  if session.per_thread then return function(ev) return ev._tid end end
  return function(ev) return ev._cpu end
end

--- Returns the table of --impl delay.
local function new_table(settings, kinds, value)
  local opt, session, key = settings.opt, settings.session, settings.events.key
  local is_thread = not key and session.instance_field == '_tid'
  local title = key or is_thread and 'THREAD' or 'CPU'
  return latency.new {
    kinds = kinds,
    than = opt.than,
    variance = opt.variance,
    by_key = opt.perins and {
      title = title,
      width = title == 'CPU' and 3 or math.max(6, #title),
      value = value,
      name = is_thread and session.task_name or nil,
    } or nil,
  }
end

--- Returns the functions that keep call events until they may be printed: keep(ev) returns the kept event,
--- show(pair, ev) prints a call that returned with ev, lose(pair, time) prints a call whose return may be lost,
--- drop(first) releases a kept event.
---@param consumer? KeptEvents
---@param details? Details
---@param pass? fun(ev: Ev) passes on the return of a long call instead of printing the call
local function keeper(settings, consumer, details, pass)
  local than, out = settings.opt.than, settings.out
  if pass then return { keep = function() end, show = function(_, last) pass(last) end } end
  if not than then return { keep = function() end } end
  if not details then
    return {
      keep = function(ev) return ev:keep() end,
      show = function(pair, last)
        out:print_event(pair.first_event)
        out:print_event(last)
      end,
    }
  end
  return {
    keep = function(ev) return consumer:retain(ev) end,
    show = function(pair, last) details:show(pair, last) end,
    lose = function(pair, time)
      if time - pair.first_time > than then details:show_lost(pair, time) end
    end,
    drop = function(first)
      if first then consumer:release(first) end
    end,
  }
end

--- Warns about calls and events dropped since the last call.
local function report_losses(settings, tree, consumer, reported)
  local calls, events = tree.dropped + tree.evicted, consumer and consumer:missing() or 0
  if calls > reported.calls then
    settings.out:warn(('%s: %d calls dropped (in total %d because of lost events, %d because too many were open)')
      :format(settings.name, calls - reported.calls, tree.dropped, tree.evicted))
  end
  if events > reported.events then
    settings.out:warn(('%s: %d events are missing from details: there were too many to keep'):format(settings.name,
      events - reported.events))
  end
  reported.calls, reported.events = calls, events
end

--- Returns the kinds of calls, as in lib.latency, the names of the functions, and the events that details may show.
local function listed(functions, others)
  local kinds, names, kept = {}, {}, {}
  for i, pair in ipairs(functions) do
    kinds[i], names[i] = { start = pair[1].alias, stop = pair[2].alias }, pair[1].alias
    kept[2 * i - 1], kept[2 * i] = pair[1], pair[2]
  end
  for _, event in ipairs(others) do kept[#kept + 1] = event end
  return kinds, names, kept
end

--- What is done with calls: they are counted in a table, drawn, exported and printed.
---@class CallSinks
---@field keeping table of keeper()
---@field pass? function
---@field table_? Latency
---@field map? PairHeatmap
---@field slice? function
---@field than? number

--- Returns the functions `ended` and `dropped` of a call tree, and what sets the time of a loss.
local function consumers(sinks, number, with_details)
  local keeping, pass, table_, map, slice = sinks.keeping, sinks.pass, sinks.table_, sinks.map, sinks.slice
  local pair, longest, lost_at = { kind = 0, key = 0, ns = 0 }, sinks.than or math.huge, nil
  local function ended(f, key, ns, first, last)
    local id = number(key)
    if slice then slice(f, id, last._time - ns, last._time) end
    pair.kind, pair.key, pair.ns = f - 1, id, ns
    pair.first_time, pair.second_time, pair.first_event = last._time - ns, last._time, first
    if table_ then table_:add(pair) end
    if map then map:add(pair) end
    if ns > longest and (first or pass) then keeping.show(pair, last) end
    if keeping.drop then keeping.drop(first) end
  end
  local function dropped(key, time, first)
    pair.key, pair.first_time, pair.first_event = key, time, first
    if lost_at and first then keeping.lose(pair, lost_at) end
    keeping.drop(first)
  end
  return (table_ or sinks.than or map or slice) and ended or nil, with_details and dropped or nil,
    function(time) lost_at = time end
end

--- Adds the handlers of the events to those of the profiler.
---@param is_known fun(ev: Ev): boolean the event comes after the last loss
local function add_events(handlers, settings, tree, keep, is_known)
  for f, events in ipairs(settings.events.functions) do
    local call_key = key_of(events[1], settings.opt, settings.session)
    local return_key = key_of(events[2], settings.opt, settings.session)
    handlers[events[1]] = function(ev)
      local key = call_key(ev)
      if key ~= nil and is_known(ev) then tree:enter(f, key, ev._time, keep(ev)) end
    end
    handlers[events[2]] = function(ev)
      local key = return_key(ev)
      if key ~= nil and is_known(ev) then tree:leave(f, key, ev._time, ev) end
    end
  end
end

--- Returns the handlers that report.
local function reporters(settings, all)
  local opt, out, tree, reported = settings.opt, settings.out, all.tree, { calls = 0, events = 0 }
  local function print_times()
    if all.table_ then
      all.table_:print(out)
    else
      tree:print(out, all.names, opt.impl == 'call-delay')
    end
  end
  local function report()
    print_times()
    if all.table_ then all.table_:clear() end
    tree:clear()
    report_losses(settings, tree, all.consumer, reported)
  end
  local function stop()
    if all.consumer then all.consumer:finish() end
    report()
    if all.map then all.map:write(out) end
    if opt.verbose > 0 then
      out:warn(('%s: %d calls still open; %d returns without a call'):format(settings.name, tree.open, tree.unstarted))
    end
  end
  return { draw = print_times, interval = report, stop = stop }
end

--- Returns the handlers of the profiler.
---@param settings NestedSettings
---@param detail_settings? DetailSettings
---@return table handlers
function nested.run(settings, detail_settings)
  local opt, out, session, found = settings.opt, settings.out, settings.session, settings.events
  local keyed, tree, consumer = found.key ~= nil, nil, nil
  local kinds, names, kept = listed(found.functions, found.others)
  local pass = opt.than and session.gate() or nil
  local details = detail_settings and not pass and detail.new(detail_settings,
    { name = settings.name, out = out, session = session, verbose = opt.verbose > 0,
      keyed_by_thread = not keyed and session.per_thread })
  if details then
    consumer = kept_events.new { events = kept, details = details, key = opt.key,
      oldest = function() return tree:oldest() end }
  end
  local has_names = select(2, key_of(found.functions[1][1], opt, session))
  local function name_of(id) return tree.keys:part(tonumber(id), 1) end
  local key_printer = session.key_printer(found.functions[1][1], found.key)
  local print_key = has_names and name_of or key_printer
  local table_ = opt.impl == 'delay' and new_table(settings, kinds, print_key) or nil
  local map = opt.heatmap and heat.new(opt.heatmap, kinds, session) or nil
  local sinks = { keeping = keeper(settings, consumer, details or nil, pass), pass = pass, than = opt.than,
    table_ = table_, map = map }
  sinks.slice = session.slices { by = keyed and 'key' or session.per_thread and 'tid' or 'cpu', names = names,
    nested = true, key_text = print_key or nil, has_addresses = print_key == addresses.text }
  local ended, dropped, set_loss = consumers(sinks, function(key) return has_names and tree.keys.id(key) or key end,
    details)
  tree = calltree.new { than = opt.than, variance = opt.variance, ended = ended, dropped = dropped }

  local handlers = reporters(settings, { tree = tree, names = names, consumer = consumer, table_ = table_,
    map = map })
  local loss_end = -math.huge
  handlers[1] = consumer and kept_events.handler(consumer)
  function handlers.lost(gap)
    local instance = not keyed and (session.per_thread and gap.tid or not session.per_thread and gap.cpu)
    set_loss(gap.from)
    tree:lose(instance or nil)
    set_loss(nil)
    if not instance then loss_end = math.max(loss_end, gap.to) end
  end
  add_events(handlers, settings, tree, sinks.keeping.keep, function(ev) return ev._time >= loss_end end)
  return handlers
end

return nested
