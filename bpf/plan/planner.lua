-- SPDX-License-Identifier: GPL-2.0-only
--- The planner: decides how each event of a run is taken. A plan follows from its facts alone, so it can be made
--- without a kernel. What only an attempt shows, such as that the verifier rejects a program, becomes a fact, too: then
--- the planner is asked again (bpf/run/in_kernel.lua).
local costs = require 'bpf.plan.costs'
local route = require 'bpf.plan.route'

local planner = {}

--- What is known about a run, as data.
---@class Facts
---@field run RunFacts
---@field kernel KernelFacts
---@field events EventFacts[] in the order of the run
---@field offers OfferFacts[] what profilers could leave to programs, the first ones first
---@field refusals table<string, string> by planner.key(): what was attempted in vain, and why

---@class RunFacts
---@field capture 'auto'|'perf'|'bpf' the option
---@field needs table<string, string> of options, see needs.of()
---@field is_stored boolean the events are not those of this machine now
---@field interval number ns; 0: none
---@field verbose integer
---@field per_thread boolean perf would attach events to threads
---@field thread_rings boolean perf would use a ring for each thread
---@field is_watched? boolean something shows each pair
---@field drops_others? boolean this process drops the events that are not about the targets
---@field shows_flags? boolean somebody may look at common_flags
---@field reads_flags? boolean and not only in details

---@class KernelFacts
---@field release number such as 6.001
---@field arch string
---@field btf boolean it has types for programs
---@field bpf? string why this process cannot load programs; nil: it can
---@field pid_max integer all thread ids are less
---@field foreign_pids boolean thread ids of programs are not those of this process
---@field shares? { measured: table[], are_events_dear: boolean, are_calls_dear: boolean } how many of some events
--- happened in other tasks than the targets, or were other system calls, in a moment before the run

---@class EventFacts
---@field name string
---@field is_tracepoint boolean of this machine or the recording
---@field has_types? boolean its arguments have types: only programs can take it
---@field machine? string that sends it
---@field is_derived boolean another event tells of it, or programs see it anyway
---@field is_aside? boolean nobody has asked for it: the host follows threads by it
---@field of_source boolean it is an event of a profiler that is a source
---@field attrs string[] its attributes, sorted
---@field is_counted boolean perf only counts it
---@field is_everywhere boolean perf opens it on all CPUs in spite of targets
---@field has_stack boolean
---@field has_user_stack boolean
---@field has_stack_copy boolean
---@field is_walked boolean programs find the stack by tables (--call-graph tables)
---@field has_strings boolean a program adds the strings behind pointers
---@field has_program boolean a program writes the samples of perf
---@field has_parts boolean samples have parts that programs do not write
---@field is_rare boolean not every event is sampled
---@field has_user_filter boolean the kernel cannot evaluate all of its filter
---@field is_call boolean it is an event of a single system call
---@field is_known boolean programs know all of its arguments
---@field is_exact boolean and its common_flags
---@field is_exact_other boolean the latter if the event is about another task
---@field gate? string the source that decides whether it is passed on
---@field handler? string why its only handler cannot be left to programs
---@field guards integer conditions without which its only handler does nothing

---@class OfferFacts
---@field way string
---@field events integer[] all of them or none
---@field attrs table<integer, string[]> by event
---@field known table<string, boolean> attributes that the way understands, beside alias=
---@field shared table<integer, boolean> events that somebody else sees, too
---@field gate? string name of the source whose condition it is
---@field gate_refusal? string
---@field asks? string[] why the way cannot do what the profiler asks for
---@field exit? 'first'|'last' the exit of a task is the start of pairs, or their end
---@field passes? boolean what is sent is passed on, and not printed
---@field hidden? string what details show, but no program sees
---@field sends? { event: integer, is_other: boolean }[] events that programs send; is_other: of other tasks only
---@field shows? { event: integer, only_details: boolean }[] events that details show; only_details: nobody else does
---@field keeps? integer[] of `events`: only kept for details

---@class Plan
---@field facts Facts
---@field routes Route[] by event
---@field offers { way: string, refusal?: string }[] by offer
---@field calls integer events of single system calls that no offer takes

local SHORTEST_INTERVAL = 1e8 -- ns: at the end of one, Switch:turn() waits for all CPUs, usually 10 to 40 ms

--- Returns the name of an attempt among the refusals.
---@param kind 'offer'|'guards'|'all'|'kernel'
---@param index integer of the offer or event
---@return string
function planner.key(kind, index) return ('%s %d'):format(kind, index) end

--- Returns why programs cannot have the events of a run; nil if they can.
---@param facts Facts
---@return string?
function planner.refuses_programs(facts)
  local run, shares = facts.run, facts.kernel.shares
  if run.capture == 'perf' then return 'as --capture says' end
  if run.is_stored then return 'they are not those of this machine now' end
  for _, event in ipairs(facts.events) do
    if event.is_everywhere then return ('%s is read in all tasks'):format(event.name) end
  end
  if run.needs.perf_samples then return run.needs.perf_samples end
  if shares and shares.are_events_dear then
    return 'most of these events happen in other tasks, which would pay for it'
  end
end

--- Returns why a program cannot have an event in some tasks. Some kernels pass an event that is about another task than
--- the current one, such as a wakeup, to the perf events of both.
local function refuses_tasks(facts, event)
  local shares = facts.kernel.shares
  if facts.run.per_thread and (event.name:match '^sched:sched_wak' or event.name:match '^sched:sched_stat_') then
    return ('kernels differ in the threads of which %s is an event'):format(event.name)
  end
  if shares and shares.are_calls_dear and event.is_call then
    return 'most system calls are others, which would pay for it'
  end
end

--- Returns why a way that passes on no samples cannot have an event.
local function refuses_event(facts, offer, way, index)
  local event = facts.events[index]
  if event.of_source and not offer.gate then return ('%s is an event of a source'):format(event.name) end
  if not event.is_tracepoint or event.machine or event.is_derived then
    return ('%s is not a tracepoint of this machine'):format(event.name)
  end
  if event.has_stack and not way.has_stacks then return 'stacks are recorded' end
  if event.has_strings then return ('the strings of %s are recorded'):format(event.name) end
  for _, name in ipairs(offer.attrs[index]) do
    if name ~= 'alias' and not offer.known[name] then return ('%s has the attribute %s='):format(event.name, name) end
  end
  return refuses_tasks(facts, event) or offer.shared[index] and ('%s has several handlers'):format(event.name)
    or nil
end

--- Returns which needs of the run a way cannot give.
local function lacks(facts, way, is_gate)
  for _, need in ipairs(way.lacks) do
    -- Behind a gate, all that is passed on reaches this process.
    if not (is_gate and need == 'each_event') and facts.run.needs[need] then return facts.run.needs[need] end
  end
end

local function refuses_offer(facts, offer, way, calls)
  local run = facts.run
  local reason = planner.refuses_programs(facts) or lacks(facts, way, offer.gate)
  if reason then return reason end
  if not offer.gate then
    if run.verbose > 1 then return '-vv prints them' end
    if run.interval > 0 and run.interval < SHORTEST_INTERVAL then return 'the interval is less than 100 ms' end
  end
  if offer.gate_refusal then return offer.gate_refusal end
  for _, index in ipairs(offer.events) do
    reason = refuses_event(facts, offer, way, index)
    if reason then return reason end
  end
  return facts.kernel.bpf or way.refuses(facts, offer, calls)
end

--- Returns the next level of conditions with which an event was not attempted in vain; nil and why: there is none.
local function level_of(facts, event, index)
  local run, reason = facts.run, nil
  local is_seen = run.verbose > 1 or run.needs.each_event or run.needs.event_counts or run.needs.reload
  if event.guards > 0 and not is_seen and not facts.refusals[planner.key('guards', index)] then return 'guards' end
  for _, level in ipairs { 'all', event.has_user_filter and 'kernel' or nil } do
    reason = facts.refusals[planner.key(level, index)]
    if not reason then return level end
  end
  return nil, reason
end

--- Returns the route of an event that no offer takes.
local function plan_event(plan, ways, index, why)
  local facts, event = plan.facts, plan.facts.events[index]
  local one = { event = event.name, way = 'sample', by = 'perf', why = why }
  if event.is_derived then return one end -- it is not opened
  local level
  local reason = planner.refuses_programs(facts) or refuses_tasks(facts, event)
    or ways.capture.refuses(facts, event, plan.calls) or facts.kernel.bpf
  if not reason then level, reason = level_of(facts, event, index) end
  if level then
    one.way, one.by, one.level = 'capture', 'BPF', level
  else
    why[#why + 1] = { way = 'capture', reason = reason }
    if event.machine then
      one.way, one.by = 'machine', 'machine'
    elseif facts.run.is_stored then
      one.way, one.by = 'recording', 'recording'
    elseif event.is_counted then
      one.way = 'perf_count'
    end
  end
  one.cost = costs.of(one.way, event)
  return one
end

--- Returns the number of events of single system calls that no offer takes so far.
local function open_calls(plan)
  local n = 0
  for i, event in ipairs(plan.facts.events) do
    if event.is_call and not event.is_derived and not plan.routes[i] then n = n + 1 end
  end
  return n
end

--- Makes a plan.
---@param facts Facts
---@param ways table<string, Way>
---@return Plan
function planner.plan(facts, ways)
  local plan = { facts = facts, routes = {}, offers = {}, calls = 0 }
  local refused = {} -- by event
  for i, event in ipairs(facts.events) do
    refused[i] = event.handler and { { way = 'count', reason = event.handler, is_handler = true } } or {}
  end
  for i, offer in ipairs(facts.offers) do
    local way = ways[offer.way]
    local reason = refuses_offer(facts, offer, way, open_calls(plan)) or facts.refusals[planner.key('offer', i)]
    plan.offers[i] = { way = offer.way, refusal = reason }
    for _, index in ipairs(offer.events) do
      if reason then
        table.insert(refused[index], { way = offer.way, reason = reason })
      else
        local event = facts.events[index]
        plan.routes[index] = { event = event.name, way = offer.way, by = 'BPF', why = refused[index], does = way.does,
          cost = costs.of(offer.way, event) }
      end
    end
    for _, index in ipairs(not reason and offer.keeps or {}) do
      route.write(plan.routes[index], { way = 'keep', does = ways.keep.does,
        cost = costs.of('keep', facts.events[index]) })
    end
  end
  plan.calls = open_calls(plan)
  for i in ipairs(facts.events) do plan.routes[i] = plan.routes[i] or plan_event(plan, ways, i, refused[i]) end
  return plan
end

--- Returns why some events of a run are neither captured nor taken otherwise; nil: there are none. Beside others,
--- events with cpus= may stay with perf.
---@param plan Plan
---@return string? reason
---@return boolean is_news the reason is not simply that these are other events
function planner.why_perf(plan)
  local reason, is_news, because_of_cpus, some = nil, false, nil, false
  for i, one in ipairs(plan.routes) do
    local event = plan.facts.events[i]
    if not event.is_derived and not event.is_aside then
      local why = one.by ~= 'BPF' and route.refusal(one, true) or nil
      local has_cpus = false
      for _, name in ipairs(event.attrs) do has_cpus = has_cpus or name == 'cpus' end
      if has_cpus then
        because_of_cpus = because_of_cpus or why
      else
        if why and event.is_known and not is_news then reason, is_news = why, true end
        reason = reason or why
      end
      some = some or one.by == 'BPF'
    end
  end
  return reason or not some and because_of_cpus or nil, is_news or not some and because_of_cpus ~= nil
end

--- Returns why programs do not count or pair the events of the first offer that was refused; nil: none was.
---@param plan Plan
---@return string?
function planner.why_samples(plan)
  for _, offer in ipairs(plan.offers) do
    if offer.refusal then return offer.refusal end
  end
end

return planner
