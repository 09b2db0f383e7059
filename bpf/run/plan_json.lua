-- SPDX-License-Identifier: GPL-2.0-only
--- The plan of a run as a JSON object: the facts that it follows from, and the route of each event. What is not known,
--- such as a cost that was not measured, is null.
local nearest = require 'bindings.base.nearest'
local costs = require 'bpf.plan.costs'
local encoder = require 'bindings.base.json'

local json, object = encoder.value, encoder.object
local plan_json = {}

--- Returns an array of encoded values.
local function array(list, encode)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = encode(value, i) end
  return '[' .. table.concat(parts, ',') .. ']'
end

--- Returns an object with some fields of a table.
local function fields(from, names)
  local members = {}
  for i, name in ipairs(names) do members[i] = { name, json(from[name]) } end
  return members
end

--- Returns an object with all members of a table of strings.
local function strings(map) return object(fields(map, nearest.keys(map))) end

local RUN = { 'capture', 'interval', 'verbose', 'is_stored', 'per_thread', 'thread_rings' }
local EVENT = { 'name', 'attrs', 'gate', 'machine', 'is_tracepoint', 'of_source', 'is_counted', 'is_everywhere',
  'has_stack', 'has_user_stack', 'has_stack_copy', 'has_strings', 'has_program', 'has_parts', 'is_rare',
  'has_user_filter', 'is_call', 'is_known', 'is_exact', 'is_exact_other', 'handler',
  'guards' }
local ROUTE = { 'event', 'way', 'by' }
local MORE = { 'program', 'does', 'sent', 'kept', 'level' }
local SHARE = { 'tracepoint', 'ours', 'others' }

local function of_kernel(kernel)
  local members = fields(kernel, { 'release', 'arch', 'btf', 'bpf', 'pid_max', 'foreign_pids' })
  local shares, measured = kernel.shares, 'null'
  if shares then
    measured = object { { 'ms', json(shares.ms) },
      { 'measured', array(shares.measured, function(one) return object(fields(one, SHARE)) end) },
      { 'are_events_dear', json(shares.are_events_dear) }, { 'are_calls_dear', json(shares.are_calls_dear) } }
  end
  members[#members + 1] = { 'shares', measured }
  return object(members)
end

local function of_offer(facts, offer)
  return object {
    { 'way', json(offer.way) }, { 'asks', json(offer.asks) }, { 'gate', json(offer.gate) },
    { 'events', array(offer.events, function(index) return json(facts.events[index].name) end) },
  }
end

local function of_facts(facts)
  local run = fields(facts.run, RUN)
  run[#run + 1] = { 'needs', strings(facts.run.needs) }
  run[#run + 1] = { 'shows_flags', json(rawget(facts.run, 'shows_flags')) } -- null: it does not matter
  local shown = {}
  for _, event in ipairs(facts.events) do shown[#shown + 1] = not event.is_derived and event or nil end
  return object {
    { 'run', object(run) }, { 'kernel', of_kernel(facts.kernel) },
    { 'events', array(shown, function(event) return object(fields(event, EVENT)) end) },
    { 'offers', array(facts.offers, function(offer) return of_offer(facts, offer) end) },
    { 'refusals', strings(facts.refusals) },
  }
end

local function of_route(one)
  local members = fields(one, ROUTE)
  members[#members + 1] = { 'why', array(one.why, function(refused)
    return object(fields(refused, { 'way', 'reason' }))
  end) }
  members[#members + 1] = { 'cost', json(one.cost) }
  for _, name in ipairs(MORE) do members[#members + 1] = one[name] and { name, json(one[name]) } or nil end
  return object(members)
end

--- Returns the plan of a run.
---@param run Run
---@return string line
function plan_json.text(run)
  return object {
    { 'profiler', json(run.name) }, { 'facts', of_facts(run.in_kernel.plan.facts) },
    { 'routes', array(run.events:shown(), function(event) return of_route(event.route) end) },
    { 'costs', object { { 'unit', json 'ns' }, { 'source', json(costs.SOURCE) } } },
  } .. '\n'
end

return plan_json
