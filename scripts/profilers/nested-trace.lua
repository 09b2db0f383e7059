-- SPDX-License-Identifier: GPL-2.0-only
--- Functions that call each other, each given by an event where it begins and one where it ends.
--- Longer than other profilers, because it has no library but the tree: what it measures no other does.
local calltree = require 'lib.calltree'
local latency = require 'lib.latency'
local relation = require 'lib.relation'

local options = relation.pick('than', 'perins')
options.impl = {
  type = 'enum',
  values = { 'call', 'call-delay', 'delay' },
  default = 'call-delay',
  help = 'the tree of calls, the same with their times, or the times of each function alone',
}

--- The pair of events of each -e.
local function functions(opt)
  local list, keyed, keyless = {}, nil, nil
  for i, group in ipairs(opt.event) do
    local traced = {}
    for _, event in ipairs(group) do
      if not event.attrs.untraced then traced[#traced + 1] = event end
    end
    if #traced ~= 2 then
      return nil, ('-e number %d: a function is two events, where it begins and where it ends, not %d')
        :format(i, #traced)
    end
    for _, event in ipairs(traced) do
      if event.attrs.key or opt.key then keyed = event else keyless = event end
    end
    list[i] = traced
  end
  if #list == 0 then return nil, 'name a function with -e BEGIN,END' end
  if keyed and keyless then
    return nil, ('%s has a key and %s has none: give all events one, with key= or -k')
      :format(keyed.name, keyless.name)
  end
  return list, keyed and (keyed.attrs.key or opt.key)
end

--- A function that gives an event's key; whether keys are strings.
local function key_of(event, opt, session)
  local text = event.attrs.key or opt.key
  if text then
    local expression = session.expression(event, text)
    return expression.value, expression.type == 'string'
  end
  if session.per_thread then return function(ev) return ev._tid end end
  return function(ev) return ev._cpu end
end

return {
  summary = 'Functions that call each other: call tree and times',
  description = [[
Each -e is a function: the event where it begins, then the one where it ends. What begins before another
has ended is called by that. The calls of a CPU or thread, or with the same key, belong together. R marks
a function that calls itself, directly or not: its calls count where it was first called. self is the
time of a function without that of those that it calls.]],
  examples = {
    { 'profscript nested-trace -e irq:softirq_entry,irq:softirq_exit'
        .. ' -e timer:timer_expire_entry,timer:timer_expire_exit -i 1000', 'timers within softirqs' },
    { 'profscript nested-trace --impl call -e uprobe:main@./prog,uretprobe:main@./prog'
        .. ' -e uprobe:f@./prog,uretprobe:f@./prog -- ./prog', 'which functions of a program call which' },
  },
  attributes = { 'key', 'printkey', 'untraced' },
  options = options,

  start = function(opt, out, session)
    local list, key_text = functions(opt)
    if not list then return nil, key_text end
    local flat = opt.impl == 'delay'
    if opt.perins and not flat then return nil, '--perins is for --impl delay' end
    local kinds, names = {}, {}
    for i, pair in ipairs(list) do
      kinds[i], names[i] = { start = pair[1].alias, stop = pair[2].alias }, pair[1].alias
    end

    local tree
    local has_names = select(2, key_of(list[1][1], opt, session))
    local title = key_text or session.per_thread and 'THREAD' or 'CPU'
    local is_thread = not key_text and session.per_thread
    local table_ = flat and latency.new {
      kinds = kinds,
      than = opt.than,
      by_key = opt.perins and {
        title = title,
        width = title == 'CPU' and 3 or math.max(6, #title),
        value = has_names and function(id) return tree.keys:part(id, 1) end or nil,
        name = is_thread and session.task_name or nil,
      } or nil,
    }
    local pair, longest, last = { kind = 0, key = 0, ns = 0 }, opt.than or math.huge, nil
    tree = calltree.new {
      than = opt.than,
      ended = (flat or opt.than) and function(f, key, ns, first)
        if flat then
          pair.kind, pair.key, pair.ns = f - 1, has_names and tree.keys.id(key) or key, ns
          table_:add(pair)
        end
        if ns > longest then
          out:print_event(first)
          out:print_event(last)
        end
      end,
    }

    local told = 0
    local function report()
      if flat then
        table_:print(out)
        table_:clear()
      else
        tree:print(out, names, opt.impl == 'call-delay')
      end
      tree:clear()
      if tree.dropped + tree.evicted > told then
        out:warn(('nested-trace: %d calls dropped: %d for lost events, %d because too many were open'):format(
          tree.dropped + tree.evicted - told, tree.dropped, tree.evicted))
        told = tree.dropped + tree.evicted
      end
    end

    local hole_end = -math.huge
    local handlers = {
      interval = report,
      stop = function()
        report()
        if opt.verbose > 0 then
          out:warn(('nested-trace: %d calls still open; %d ends without a beginning'):format(tree.open, tree.unstarted))
        end
      end,
      lost = function(gap)
        local instance = not key_text and (session.per_thread and gap.tid or not session.per_thread and gap.cpu)
        tree:lose(instance or nil)
        if not instance then hole_end = math.max(hole_end, gap.to) end
      end,
    }
    for f, events in ipairs(list) do
      local begin_key, end_key = key_of(events[1], opt, session), key_of(events[2], opt, session)
      handlers[events[1]] = function(ev)
        local key = begin_key(ev)
        if key ~= nil and ev._time >= hole_end then tree:enter(f, key, ev._time, opt.than and ev:keep()) end
      end
      handlers[events[2]] = function(ev)
        local key = end_key(ev)
        last = ev
        if key ~= nil and ev._time >= hole_end then tree:leave(f, key, ev._time) end
      end
    end
    return handlers
  end,
}
