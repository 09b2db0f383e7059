-- SPDX-License-Identifier: GPL-2.0-only
--- Latency analysis, for profilers of pairs. It prints a table of latencies, the pairs that took too long or too
--- short with details, and writes a heat map. The options are those of lib.relation.
---
---   local found, message = relation.events(opt)
---   if not found then return nil, message end
---   return delay.run { name = 'requests', opt = opt, out = out, session = session, events = found }
local detail = require 'lib.detail'
local heat = require 'lib.pair_heatmap'
local latency = require 'lib.latency'
local relation = require 'lib.relation'
local values = require 'bindings.options.values'

local delay = {}

--- The settings of all analyses of pairs.
---@class DelaySettings
---@field name string name of the profiler
---@field opt table options of the profiler, which include options of lib.relation
---@field out Output
---@field session Session
---@field events RelatedEvents
---@field threads? boolean the key is a thread ID, although it is the value of an expression

--- Returns the settings of the key column.
local function key_column(key, threads, session, value)
  local title = threads and 'THREAD' or key or 'CPU'
  return {
    title = title,
    width = title == 'CPU' and 3 or math.max(6, #title),
    value = value,
    name = threads and session.task_name or nil,
  }
end

--- Returns a function(p, second) that prints the events of a pair.
local function printer(settings, details)
  local out, session = settings.out, settings.session
  if details then return function(p, second) details:show(p, second) end end
  return function(p, second)
    local first = p.first_event
    if not first then return end
    local clock_error = session.clock_error(p.first_class, p.second_class)
    if clock_error == 0 then
      out:print_event(first)
      out:print_event(second)
      return
    end
    out:print_event(first, false, nil, { part = 'first', offset_ns = 0, uncertain = false })
    out:print_event(second, false, nil, { part = 'second', offset_ns = p.ns,
      uncertain = math.abs(p.ns) < clock_error })
  end
end

--- Returns the handlers of the profiler.
---@param settings DelaySettings
---@return table? handlers nil: see message
---@return string? message
function delay.run(settings)
  local opt, found, session = values.optional(settings.opt), settings.events, settings.session
  local than = opt.only_than or opt.than
  local longest, shortest = than or math.huge, opt.lower or -1
  local prints = than ~= nil or opt.lower ~= nil
  local pass = prints and session.gate() or nil
  local threads = settings.threads or not found.key and session.instance_field == '_tid'
  local parsed, message = detail.of_options(settings.name, opt, found.others, prints, settings.out)
  if message then return nil, message end
  local details = parsed and not pass and detail.new(parsed, { name = settings.name, out = settings.out,
    session = session, keyed_by_thread = threads, verbose = opt.verbose > 0 })
  local show = printer(settings, details)
  local draws = opt.heatmap and not pass
  local map = draws and heat.new(opt.heatmap, latency.kinds(found.stages, opt.cycle), session) or nil

  local matcher
  local table_ = latency.new {
    stages = found.stages,
    than = than,
    variance = opt.variance,
    cycle = opt.cycle,
    by_key = opt.perins and key_column(found.key, threads, session, function(key) return matcher:key_value(key) end)
      or nil,
  }
  local by_key = opt.perins
  local function add_to_map(p, second)
    map:add(p)
    if p.ns > longest or p.ns < shortest then show(p, second) end
  end
  local analysis = {
    keep = prints and not pass,
    details = details or nil,
    pass = pass,
    latencies = not by_key and table_.hists or nil,
    rows = by_key and table_:rows_by_key() or nil,
    pair = map and add_to_map or prints and show or nil,
    than = not map and than or nil,
    lower = not map and opt.lower or nil,
    lost = details and than and function(p, time)
      if time - p.first_time > than then details:show_lost(p, time) end
    end,
    draw = function(out) table_:print(out, opt.only_than) end,
    report = function(out)
      table_:print(out, opt.only_than)
      table_:clear()
    end,
    stop = map and function(out) map:write(out) end or nil,
  }
  local handlers
  handlers, matcher = relation.run(settings.name, analysis, found, opt, settings.out, session)
  return handlers
end

return delay
