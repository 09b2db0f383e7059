-- SPDX-License-Identifier: GPL-2.0-only
--- Collects the facts from which a run is planned (bpf/plan/planner.lua): about its options, its events, what its
--- handlers do, and this kernel. What takes a while to find is found when the planner first asks for it.
local asm = require 'bpf.gen.asm'
local attach = require 'bindings.select.attach'
local bit = require 'bit'
local capture = require 'bpf.gen.capture'
local cgroups = require 'bpf.groups.cgroups'
local computed = require 'bpf.gen.computed'
local ffi = require 'ffi'
local gates = require 'bpf.run.gates'
local libbpf = require 'bindings.bpf.libbpf'
local mentions = require 'bpf.handlers.mentions'
local nearest = require 'bindings.base.nearest'
local needs = require 'bpf.plan.needs'
local planner = require 'bpf.plan.planner'
local processes = require 'bindings.select.processes'
local program = require 'bpf.gen.program'
local share = require 'bpf.run.share'
local stack_walks = require 'bpf.run.stack_walks'
local sys = require 'bindings.base.sys'
local system_calls = require 'bpf.gen.system_calls'
local targets = require 'bpf.gen.targets'
local typed_events = require 'bpf.pointers.typed_events'

local C = ffi.C
local facts = {}

-- The handlers ------------------------------------------------------------------------------------

-- What a script says that reads common_flags: by name, by printing events as text, or by listing fields.
local READERS = { print_event = true, fields = true }

local function is_common(text) return text:find('common_flags', 1, true) or text:find('common_preempt', 1, true) end

--- Returns whether somebody may look at common_flags.
---@param run Run
---@param checked contract.Handlers
---@param only_details? boolean at an event that only details show, and they mark flags that are not known
---@return boolean
local function shows_flags(run, checked, only_details)
  -- The next version of a script may look at them.
  if run.opt.watch or run.opt.verbose > 1 or #run.events.sources.list > 0 then return true end
  if mentions.option(run.opt, function(text) return is_common(text) ~= nil end) then return true end
  for _, event in ipairs(run.events.list) do
    if is_common(event.filter or '') or mentions.option(event.attrs, is_common) then return true end
  end
  if only_details then return false end
  local prints = run.opt.format == 'text'
  local roots = { run.profiler.start, checked.life, of_host = checked.consumers }
  local profilers = { checked }
  for _, source in ipairs(run.events.sources.list) do
    if source.is_gate then profilers[#profilers + 1] = source.checked end
  end
  for _, one in ipairs(profilers) do
    for _, entry in ipairs(one.events) do roots[#roots + 1] = entry.handler end
  end
  return mentions.any(roots, function(text, is_code)
    return is_code and READERS[text] and (prints or text ~= 'print_event') or is_common(text) ~= nil
  end)
end

--- Returns the number of conditions without which the only handler of an event does nothing, and nobody else sees it.
local function guards_of(run, event, checked)
  local plan = run.in_kernel.only_plan[event]
  if not plan or not plan.code or plan.code.guards == 0 or event.owner.parent then return 0 end
  for name in pairs(event.attrs) do
    if name ~= 'alias' then return 0 end
  end
  for _, consumer in ipairs(checked.consumers) do
    if consumer.feed or consumer.prepare then return 0 end
  end
  return plan.code.guards
end

-- The events --------------------------------------------------------------------------------------

--- Returns whether a program drops what is not about the threads that the run names.
local function is_dropped(run, event)
  for _, one in ipairs(run.in_kernel.only_threads) do
    if one == event then return true end
  end
  return false
end

--- Returns what is known about an event.
local function of_event(run, event, checked)
  local request, name, handler = event.request, event.name, run.in_kernel.only_plan[event]
  local has_types, has_stack = typed_events.of(event) ~= nil, request.callchain ~= 0
  local walks = stack_walks.are_wanted(run)
  local is_tracepoint = has_types or event.tracepoint ~= nil
  local is_known = has_types or is_tracepoint and capture.is_known(name)
  return {
    name = name, attrs = nearest.keys(event.attrs), gate = event.gate,
    machine = event.machine and event.machine.address,
    is_tracepoint = is_tracepoint, has_types = has_types,
    is_derived = event.is_derived or false,
    is_aside = event:is_aside(),
    of_source = event.owner ~= nil and event.owner.parent ~= nil,
    is_counted = request.counted == 1,
    is_everywhere = request.everywhere == 1,
    has_stack = has_stack,
    has_user_stack = has_stack and request.callchain >= C.STACK_USER,
    has_stack_copy = request.attr.sample_stack_user > 0 and type(run.opt.call_graph) == 'table' and not walks,
    is_walked = walks,
    has_strings = event.strings ~= nil,
    has_program = request.bpf_array ~= 0 or is_dropped(run, event),
    has_parts = request.reads ~= 0 or request.sample ~= 0,
    is_rare = request.attr.freq ~= 0 or request.attr.sample_period > 1,
    has_user_filter = event.filters.user ~= nil,
    is_call = system_calls.parts(name) ~= nil,
    is_known = is_known,
    is_exact = is_known and capture.is_exact(name),
    is_exact_other = is_known and capture.is_exact(name, true),
    handler = handler and not handler.offer and handler.reason or nil,
    guards = checked and guards_of(run, event, checked) or 0,
  }
end

--- Returns whether someone else sees an event of an offer, too.
local function is_shared(offer, event, checked)
  for _, consumer in ipairs(checked.consumers) do
    if consumer.offered ~= offer and (consumer.feed or consumer.prepare) then return true end
  end
  for _, entry in ipairs(checked.events) do
    for _, found in ipairs(entry.found) do
      if found == event and not (offer.handlers and offer.handlers[event] == entry.handler) then return true end
    end
  end
  return false
end

--- Returns what is known about an offer.
local function of_offer(run, offer, index_of, checked)
  local gate = offer.gate
  local function collect()
    local one = offer:facts(index_of, run)
    one.way, one.events, one.attrs, one.shared, one.known = offer.way, {}, {}, {}, offer.attributes or {}
    for i, event in ipairs(offer.events) do
      local index = index_of[event]
      one.events[i], one.attrs[index] = index, nearest.keys(event.attrs)
      one.shared[index] = not gate and is_shared(offer, event, checked) or nil
    end
    return one
  end
  if not gate then return collect() end
  local one = gate:on_its_own(collect)
  one.gate, one.gate_refusal = gate.name, gates.refuses(offer)
  return one
end

-- The kernel --------------------------------------------------------------------------------------

local MEASURED, RARE = 20, 200 -- ms; fewer events in that time cost nothing worth mentioning
local MOST_MEASURED = 8 -- kinds of events: loading a program for each takes time
-- With targets, a program costs other tasks 50 to 70 ns more per event than perf does, and saves the targets 460 ns.
local MOST_OTHERS = 8 -- for each event of a target

--- Returns the events whose share is to be measured: those of system calls, and with targets also others.
local function measured(list, has_targets)
  local found, seen, of_calls = {}, {}, {}
  for _, event in ipairs(list) do
    local is_sampled = event.request.counted == 0 and not event.strings
    local is_known = event.tracepoint ~= nil and capture.is_known(event.name)
    if is_sampled and is_known and not seen[event.name] and #found < MOST_MEASURED then
      seen[event.name] = true
      local is_call = system_calls.parts(event.name) ~= nil
      local call = is_call and asm.attempt(function() return system_calls.of(event.name) end)
      if call then
        local of = of_calls[call.tracepoint] or { tracepoint = call.tracepoint, numbers = {} }
        if #of.numbers == 0 then found[#found + 1] = of end
        of_calls[call.tracepoint] = of
        table.insert(of.numbers, call.nr)
      elseif has_targets and not is_call then
        found[#found + 1] = { tracepoint = event.name:match ':(.*)$' }
      end
    end
  end
  return found
end

--- Measures whether programs would cost the other tasks, or other system calls, more than they save. A workload does
--- not run yet.
---@param run Run
---@return table? shares see KernelFacts
local function measure(run)
  local opt = run.opt
  local has_groups = opt.cgroups and #opt.cgroups > 0
  local has_threads = (opt.pids or opt.tids) and not run.everywhere
  local is_decided = opt.capture ~= 'auto' or stack_walks.are_wanted(run)
  if is_decided or attach.is_target(opt, run.workload) or opt.container then return end
  return (asm.attempt(function()
    local list = measured(run.events:shown(), has_groups or has_threads)
    if #list == 0 then asm.refuse 'nothing needs it' end
    local tasks = has_groups and targets.groups(cgroups.find(opt.cgroups)) or has_threads
      and share.tasks(opt.pids and processes.pids(opt.pids) or {}, opt.tids or {}) or nil
    local shares = { measured = {}, ms = MEASURED }
    local found = program.in_any_case(function() return share.measure(list, tasks, MEASURED) end)
    local function are_dear(calls)
      local ours, others = 0, 0
      for i, of in ipairs(list) do
        if (of.numbers ~= nil) == calls then ours, others = ours + found[i].ours, others + found[i].others end
      end
      return others > RARE and others > MOST_OTHERS * ours
    end
    for i, of in ipairs(list) do
      shares.measured[i] = { tracepoint = of.tracepoint, ours = found[i].ours, others = found[i].others }
    end
    shares.are_events_dear, shares.are_calls_dear = are_dear(false), are_dear(true)
    return shares
  end))
end

local SYS_ADMIN, PERFMON, BPF = 21, 38, 39 -- capabilities

--- Returns why this process cannot load programs; nil if it can.
local function refuses_bpf()
  local lib, missing = libbpf.open()
  if not lib then return missing end
  local high, low = (sys.read '/proc/self/status' or ''):match '\nCapEff:%s*(%x+)(%x%x%x%x%x%x%x%x)\n'
  if not high then return end
  high, low = tonumber(high, 16), tonumber(low, 16)
  local function has(n)
    local word = n < 32 and low or high
    return bit.band(bit.rshift(word, n % 32), 1) == 1
  end
  if has(SYS_ADMIN) or has(BPF) and has(PERFMON) then return end
  return 'cannot create a BPF map: Operation not permitted (needs root or CAP_BPF and CAP_PERFMON)'
end

-- All of them -------------------------------------------------------------------------------------

--- Makes fields that are computed when they are first read.
local function lazily(known, compute)
  return setmetatable(known, { __index = function(_, name)
    local value = compute[name] and compute[name]()
    known[name] = value
    return value
  end })
end

--- Collects the facts for some events of a run.
---@param run Run
---@param list Event[]
---@param offers Offer[]
---@param checked? contract.Handlers nil: nobody knows yet which fields will be read
---@return Facts
function facts.collect(run, list, offers, checked)
  local opt, index_of = run.opt, {}
  local given = needs.of(run.spec.list, opt)
  local known = { refusals = {}, events = {}, offers = {} }
  known.run = lazily({
    capture = opt.capture, interval = run.interval, verbose = opt.verbose,
    is_stored = run.is_recorded or run:pulls(),
    per_thread = attach.per_thread(opt, run.workload, run.everywhere) and true or false,
    thread_rings = attach.has_thread_rings(opt, run.workload, run.everywhere) and true or false,
    needs = given,
    shows_flags = not checked or nil, reads_flags = not checked or nil,
  }, {
    shows_flags = function() return shows_flags(run, checked) end,
    reads_flags = function() return shows_flags(run, checked, true) end,
  })
  known.kernel = lazily({ arch = ffi.arch }, {
    release = computed.release,
    pid_max = sys.pid_max,
    btf = function() return sys.stat '/sys/kernel/btf/vmlinux' ~= nil end,
    bpf = refuses_bpf,
    foreign_pids = function() return run.in_kernel:has_foreign_pids() end,
  })
  for i, event in ipairs(list) do known.events[i], index_of[event] = of_event(run, event, checked), i end
  for i, offer in ipairs(offers) do known.offers[i] = of_offer(run, offer, index_of, checked) end
  if checked and not planner.refuses_programs(known) then known.kernel.shares = measure(run) end
  return known
end

return facts
