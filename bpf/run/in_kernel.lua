-- SPDX-License-Identifier: GPL-2.0-only
--- Carries out the plan of a run (bpf/plan/planner.lua): loads the programs that take its events instead of perf
--- (--capture), and runs them from the start of the session to its end. Whose offer is refused gets its events through
--- perf like any handler; the result is the same.
local cpu_list = require 'bindings.base.cpu_list'
local asm = require 'bpf.gen.asm'
local attach = require 'bindings.select.attach'
local cgroups = require 'bpf.groups.cgroups'
local dispatch = require 'bindings.view.dispatch'
local expr = require 'bindings.expr.compile'
local ffi = require 'ffi'
local followed_groups = require 'bpf.run.followed_groups'
local facts = require 'bpf.run.facts'
local failure = require 'bindings.base.failure'
local gates = require 'bpf.run.gates'
local libbpf = require 'bindings.bpf.libbpf'
local planner = require 'bpf.plan.planner'
local probe = require 'bpf.gen.probe'
local program = require 'bpf.gen.program'
local route = require 'bpf.plan.route'
local second_counts = require 'bpf.run.second_counts'
local stack_walks = require 'bpf.run.stack_walks'
local switch = require 'bpf.gen.switch'
local sys = require 'bindings.base.sys'
local system_calls = require 'bpf.gen.system_calls'
local targets = require 'bpf.gen.targets'
local printable = require 'bindings.base.text'
local thread_events = require 'bpf.gen.thread_events'
local typed_events = require 'bpf.pointers.typed_events'
local ways = require 'bpf.ways.list'
local witnesses = require 'bpf.run.witnesses'

local C = ffi.C

local in_kernel = {}

local MAX_HIDERS = 64 -- BPF programs of a tracepoint
local MOST_THREADS = 2 ^ 17 -- for a place each

--- Events that a profiler leaves to programs, if these may have them.
---@class Offer
---@field way string name of a way, see bpf/ways/list.lua
---@field events Event[] all of them or none are taken
---@field spares? Event[] events that are not opened if it is accepted: its programs see them
---@field consumer? Consumer that would take its events through perf
---@field handlers? table<Event, function> what would handle its events through perf
---@field attributes? table<string, boolean> the attributes of events that it understands, beside alias=
---@field facts fun(self, index_of: table<Event, integer>, run: Run): table what the way must know, see OfferFacts
---@field load fun(self, kernel: InKernel) makes the maps and, by kernel:probe(), the programs. May refuse
--- (asm.refuse())
---@field settle? fun(self, kernel: InKernel) called when it is accepted, before the events are opened
---@field start? fun(self, kernel: InKernel) called when the programs run
---@field turn? fun(self, side: integer, is_last: boolean) reads what was written to a side of the maps, before the
--- handlers `interval` and `stop` are called
---@field by_event? fun(self): table<Event, number> the number of events that programs have taken
---@field sees_all? fun(self, event: Event): boolean none is left out of this number, except by the event's filter
---@field running? fun(self): Figures? the account of what it has added up so far, if it needs no more than counters
---@field figures? fun(self): Figures?, Figures? the accounts of what it has added up and sent, see
--- bindings/report/figures.lua
---@field count? fun(self): number those that did not come here, if these are not all of them
---@field measures_time? boolean its programs run until it says what the end is
---@field gate? Instance the source whose condition it evaluates: only the events that are passed on come here, and
--- nothing is counted
---@field refusal? string why it was not accepted

---@class InKernel
---@field switch Switch
---@field offers Offer[] after decide(), those that were accepted
---@field captures Captures
---@field run Run
---@field calls SystemCalls
---@field only_plan table<Event, HandlerPlan> of the events that have only one handler
---@field plan? Plan
---@field facts? Facts of decide()
---@field receivers table<Event, fun(ev: Ev)> handlers of events of which programs send only some
---@field second? SecondCounts what programs count of events that perf takes
---@field witnesses? Witnesses what perf counts of events that programs take
---@field walks StackWalks
---@field only_threads Event[] of which programs drop what is not about the threads that the run names
local InKernel = {}
InKernel.__index = InKernel

---@param run Run
---@return InKernel
function in_kernel.new(run)
  if run.opt.dry_run then program.only_generate() end
  if run.opt.dry_run == 'code' then dispatch.keep_sources() end
  local self = setmetatable({ offers = {}, run = run, calls = system_calls.new(), only_plan = {}, _links = {},
    only_threads = {}, receivers = {}, _droppers = {}, _programs = {}, _missed = {} },
    InKernel)
  self.captures, self.walks = ways.capture.new(self), stack_walks.new(run)
  return self
end

--- Adds an offer. Only before the session starts.
---@param offer Offer
function InKernel:offer(offer) self.offers[#self.offers + 1] = offer end

--- Adds the offers of handlers.
---@param offers HandlerOffer[]
---@param only_plan table<Event, HandlerPlan> of the events that have only one handler
function InKernel:offer_handlers(offers, only_plan)
  self.only_plan = only_plan
  for _, offer in ipairs(offers) do self:offer(offer) end
end

--- Offers the events of a matcher.
---@param config PairsConfig
---@param gate? Instance the source whose condition it is
---@return PairOffer
function InKernel:offer_pairs(config, gate)
  local offer = ways.pair.new(config, gate)
  self:offer(offer)
  return offer
end

--- Returns the event's filters, compiled.
---@param event Event
---@param only_kernel? boolean without the part that the dispatch loop evaluates
---@return Compiled[]
function InKernel:filters(event, only_kernel) -- luacheck: no self
  local list = {}
  for _, text in ipairs { event.filters.kernel or '', not only_kernel and event.filters.user or '' } do
    if text ~= '' then
      list[#list + 1] = expr.compile_filter(text, event.fields) or expr.compile(text, event.fields, { form = 'filter' })
        or asm.refuse('only the kernel understands the filter of %s', event.name)
    end
  end
  return list
end

--- Returns whether the thread ids that programs see are not those of this process's pid namespace.
---@return boolean
function InKernel:has_foreign_pids()
  if self._foreign == nil then self._foreign = sys.has_foreign_pids() end
  return self._foreign
end

--- Makes the targets of a run: false for all tasks.
local function make_targets(self)
  local opt, workload = self.run.opt, self.run.workload
  if self._threads then return false end -- these are of the tasks that events are about
  if opt.container then return self:_follow(targets.group_tasks()) end
  if opt.cgroups and #opt.cgroups > 0 then return targets.groups(cgroups.find(opt.cgroups)) end
  if not attach.per_thread(opt, workload, self.run.everywhere) then return false end
  if self:has_foreign_pids() then asm.refuse("the kernel's thread ids are not those of this pid namespace") end
  local threads = targets.threads(attach.inherits(opt, workload), attach.is_target(opt, workload))
  if not program.is_dry() then threads:attach() end
  return threads
end

--- Returns the tasks whose events the run reads; nil: all. Refuses what programs cannot tell.
---@return Targets?
function InKernel:targets()
  if self._targets == nil and not self._no_targets then
    self._targets, self._no_targets = asm.attempt(function() return make_targets(self) end)
  end
  if self._no_targets then asm.refuse('%s', self._no_targets) end
  return self._targets or nil
end

--- Returns the threads that the run names, for an offer of a profiler that reads the events of all tasks. Refuses what
--- programs cannot tell.
---@return Targets
function InKernel:threads()
  if self._threads then return self._threads end
  local run = self.run
  if not run.everywhere or run.marks then asm.refuse 'another program knows the threads' end
  if self:has_foreign_pids() then asm.refuse("the kernel's thread ids are not those of this pid namespace") end
  if run.opt.cgroups then
    self._threads = self:_follow(targets.group_threads())
    return self._threads
  end
  self._threads = targets.threads(attach.inherits(run.opt, run.workload), false)
  if not program.is_dry() then self._threads:attach() end
  return self._threads
end

--- Makes programs follow the groups that the run names.
function InKernel:_follow(of)
  self._groups = followed_groups.new(self.run, of)
  return of
end

--- Returns the ids of the groups that --container names, as keys.
---@return table<number, boolean>
function InKernel:groups()
  local ok, why = asm.attempt(function() return self:targets() end)
  if not ok then failure.unavailable('%s: cannot follow the containers: %s', self.run.name, why) end
  return self._groups.ids
end

--- Looks for what has changed meanwhile: containers, and what processes have mapped. Called after each batch.
function InKernel:poll()
  cgroups.poll(self.run.session)
  if self._groups then self._groups:poll() end
  self.walks:poll()
end

--- Returns the bound of the thread ids; nil if they are too many for a place each.
---@return integer?
function InKernel:thread_places()
  local most = self.facts.kernel.pid_max
  return most <= MOST_THREADS and most or nil
end

--- Notes events of which only those about the threads that the run names are wanted.
---@param list Event[]
function InKernel:want_only_threads(list)
  for _, event in ipairs(list) do
    local is_captured = self.run.opt.capture == 'bpf' and not event.owner.script.profiler.everywhere
    if thread_events.names_threads(event) and not is_captured then table.insert(self.only_threads, event) end
  end
end

--- Loads the programs that drop the events about other threads. Without them, the profiler drops them.
function InKernel:_drop_others()
  local run = self.run
  for _, event in ipairs(self.only_threads) do
    if not event.route.does then
      local ok, reason = asm.attempt(function()
        local lib, missing = libbpf.open()
        local loaded, rings = thread_events.load { event = event.name, list = event.list, fields = event.fields,
          type = tonumber(event.request.attr.config), filters = self:filters(event, true),
          threads = run.everywhere and self:threads() or self:targets(),
          has_current = not event.owner.script.profiler.everywhere,
          nr_cpus = lib and lib.libbpf_num_possible_cpus() or asm.refuse('%s', missing) }
        event.request.bpf_array = rings.fd
        table.insert(self._droppers, { rings, program.is_dry() and loaded or probe.attach(loaded, self.calls) })
        return true
      end)
      if not ok and run.opt.verbose >= 1 then
        run.out:warn(('%s: recording each %s of all threads, without a BPF program: %s'):format(run.name, event.name,
          reason))
      end
    end
  end
end

--- Lets the session mark the target threads. Called when it is known who takes the events.
function InKernel:_aim()
  local aims, run = self._threads or self._targets, self.run
  if not aims or program.is_dry() then return end
  local rings = self.captures.rings
  local is_read = self._threads and run.opt.cgroups -- handlers read the marks
  if not is_read and #self.offers + #self._droppers == 0 and (self._threads or not (rings and rings.events > 0)) then
    return aims:close()
  end
  if aims.marks then run:mark_threads(aims.marks.bytes, aims, ffi.cast('uint64_t *', aims.limits.bytes)) end
  -- The workload starts with the session, but nobody is a target before.
  if #self.offers > 0 and (self._threads or attach.is_target(run.opt, run.workload)) then self.switch:on() end
end

--- Detaches the programs that follow the targets. Called when no event can happen any more.
function InKernel:forget_targets()
  for _, one in ipairs(self._droppers) do one[2]:close() end
  local aims = self._threads or self._targets
  if aims then aims:close() end
end

--- Returns what a program for an event must know.
---@param event Event
---@param gate Switch|Rings
---@param filters Compiled[]
---@param everywhere? boolean in all tasks, not only the targets
---@return ProbeSpec
function InKernel:spec(event, gate, filters, everywhere)
  return {
    event = event.name,
    typed = typed_events.of(event),
    switch = gate,
    filters = filters,
    own_pid = event.system ~= 'sched' and not event.name:find '^tp_btf:sched_' and self.run:own_pid() or nil,
    targets = not everywhere and self:targets() or nil,
    options = { foreign_pids = self:has_foreign_pids() },
    calls = self.calls,
    verb = gate == self.switch and self._verb or ways.capture.verb,
  }
end

--- Loads a program for an event: the body runs for each event that perf would have sampled. Called by offers.
---@param event Event
---@param body fun(a: Asm, source: Source, places: ProbePlaces)
---@return Descriptor program
function InKernel:probe(event, body)
  local loaded = probe.load(self:spec(event, self.switch, self:filters(event)), body)
  table.insert(self._loading, loaded)
  self._programs[event] = loaded
  if event.route then route.write(event.route, { program = loaded.name }) end
  return loaded
end

--- The same for the exits of tasks, of which perf reports each by a record.
---@param body fun(a: Asm, source: Source, places: ProbePlaces)
function InKernel:probe_exit(body)
  local spec = self:spec({ name = probe.EXIT, system = 'sched' }, self.switch, {})
  spec.is_exit = true
  table.insert(self._loading, probe.load(spec, body))
end

--- Loads a program for the threads that get another id when they execute a program. In the body, r7 is the former id,
--- and r8 the new one.
---@param body fun(a: Asm, source: Source, places: ProbePlaces)
function InKernel:probe_id_changes(body)
  local spec = self:spec({ name = probe.EXEC, system = 'sched' }, self.switch, {}, true)
  table.insert(self._loading, probe.load(spec, function(a, source, places)
    targets.load_ids(a)
    a:jump_r('==', 7, 8, 'done')
    body(a, source, places)
  end))
end

--- Loads and attaches the programs of an offer. They do nothing yet. Returns why it cannot.
---@param offer Offer
---@return string? reason
function InKernel:_load(offer)
  self._loading, self._verb = {}, ways[offer.way].verb
  local links, reason = asm.attempt(function()
    self.switch = self.switch
      or switch.new(self.run.opt.cpus and cpu_list.numbers(self.run.opt.cpus), self.run.interval > 0 and 2 or 1)
    offer:load(self)
    local links = {}
    for i, loaded in ipairs(program.is_dry() and {} or self._loading) do
      links[i] = probe.attach(loaded, self.calls)
    end
    return links
  end)
  if not links then return reason end
  for _, link in ipairs(links) do table.insert(self._links, link) end
  if offer.settle then offer:settle(self) end
  if offer.gate then gates.accept(offer) end
  for i, event in ipairs(self.run.events.list) do
    for _, spared in ipairs(offer.spares or {}) do
      if spared == event then
        event:derive()
        self.facts.events[i].is_derived = true
      end
    end
  end
end

--- Carries a plan out, as far as it has not been. Returns what was attempted in vain, and why; nil: nothing.
---@param plan Plan
---@param list Event[]
---@param done table<string, boolean> by planner.key()
---@return string? key
---@return string? reason
function InKernel:_carry_out(plan, list, done)
  local function attempt(kind, index, load)
    local key = planner.key(kind, index)
    local reason = not done[key] and load() or nil
    done[key] = true
    return reason and key, reason
  end
  for i, offer in ipairs(self.offers) do
    if not plan.offers[i].refusal then
      local key, reason = attempt('offer', i, function() return self:_load(offer) end)
      if key then return key, reason end
    end
  end
  -- The kernel passes a tracepoint to the perf event that was opened last first, but to programs as they were attached.
  for i = #list, 1, -1 do
    local event, level = list[i], not list[i].is_derived and plan.routes[i].level
    if level then
      local key, reason = attempt(level, i, function() return self.captures:add(event, level) end)
      if key then return key, reason end
    end
  end
end

--- Tells why events are not taken as --capture says, or with -v as they could be.
local function report(run, plan)
  local why, is_news = planner.why_perf(plan)
  local reason = planner.why_samples(plan)
  if why and not is_news and not reason and run.opt.capture == 'auto' then return end
  if run.opt.capture == 'bpf' and why then
    local also = reason and reason ~= why and '; nor can programs count or pair them: ' .. reason or ''
    failure.usage('%s: --capture=bpf is not possible: %s%s', run.name, why, also)
  elseif run.opt.verbose >= 1 and run.opt.capture ~= 'perf' and not run.is_recorded and (why or reason) then
    run.out:warn(('%s: events are %s: %s'):format(run.name, why and 'read through perf' or 'captured one by one',
      why or reason))
  end
end

--- Plans how the events are taken, and loads the programs. What the kernel refuses is planned again. Called when all
--- events and their filters are known, before they are opened.
---@param checked contract.Handlers
function InKernel:decide(checked)
  local run, list, done, accepted = self.run, self.run.events.list, {}, {}
  local known = facts.collect(run, list, self.offers, checked)
  self.facts = known
  local key, reason
  repeat
    self.plan = planner.plan(known, ways)
    key, reason = self:_carry_out(self.plan, list, done)
    if key then known.refusals[key] = reason end
  until not key
  for i, event in ipairs(list) do route.follow(event.route, self.plan.routes[i]) end
  for i, offer in ipairs(self.offers) do
    offer.refusal = self.plan.offers[i].refusal
    if not offer.refusal then accepted[#accepted + 1] = offer end
  end
  typed_events.check(list)
  self.offers = accepted
  self:_drop_others()
  self:_aim()
  report(run, self.plan)
  if run.opt.verbose >= 1 then self.witnesses = witnesses.new(run) end
end

--- Returns the BPF programs of other tracers that are attached to an event of perf. One that returns 0 hides it.
---@param event Event
---@return string[]? names nil: there are none
function InKernel:hiders(event)
  local run = self.run
  local is_perfs = event.tracepoint and event.route.by == 'perf' and event.request.program == 0
  if not is_perfs or #run.programs > 0 then return end
  local ids, names = ffi.new('uint32_t[?]', MAX_HIDERS), {}
  for i = 0, C.session_programs(run.session, event.class, ids, MAX_HIDERS) - 1 do
    names[#names + 1] = printable.safe(ffi.string(C.bpf_program_name(ids[i])))
  end
  return names[1] and names or nil
end

--- Returns how many events programs have counted that perf takes, and how many of them while their CPU was idle.
---@param event Event
---@return number? nil: they were not counted
---@return number?
function InKernel:count_again(event)
  if self.second then return self.second:of(event) end
end

--- Counts events of perf a second time, if the profiler compares the counts, or another tracer may hide events. Targets
--- are left to perf: an event more or less at their begin or end would not be one that is hidden.
function InKernel:_count_again()
  local run, opt = self.run, self.run.opt
  if run.is_recorded or run.everywhere or attach.per_thread(opt, run.workload) or opt.cgroups then return end
  for _, event in ipairs(run.events.list) do
    local is_sampled = event.tracepoint and event.route.way == 'sample' and not event.is_derived
      and not event.attrs.cpus
    if is_sampled and (run.profiler.compares or self:hiders(event)) then
      asm.attempt(function()
        self.second = self.second or second_counts.new(opt.cpus and cpu_list.numbers(opt.cpus))
        local spec = self:spec(event, self.second.switch, self:filters(event, true))
        spec.verb = 'check'
        self.second:add(event, spec)
        return true
      end)
    end
  end
  if self.second then self.second:on(run.session) end
end

--- Returns whether programs measure times up to the end of the run, which their offer sets.
local function measures_time(self)
  for _, offer in ipairs(self.offers) do
    if offer.measures_time then return true end
  end
  return false
end

--- Lets the programs run. Called when the session has started.
function InKernel:start()
  self:_count_again()
  local has_begun = self._threads or self._targets -- the workload begins with the session
  if self.witnesses and not has_begun then self.witnesses:mark 'before_begin' end
  for _, offer in ipairs(self.offers) do
    if offer.start then offer:start(self) end
  end
  for event, loaded in pairs(self._programs) do self._missed[event] = C.bpf_recursion_misses(loaded.fd) end
  if #self.offers > 0 then self.switch:on() end
  if #self.offers > 0 and not measures_time(self) then self.switch:end_with(self.run.session) end
  if self.witnesses then self.witnesses:mark 'after_begin' end
end

local function read(self, side, is_last)
  for _, offer in ipairs(self.offers) do
    if offer.turn and not offer.gate then offer:turn(side, is_last) end
  end
end

--- Returns whether programs count something.
local function counts_any(self)
  for _, offer in ipairs(self.offers) do
    if not offer.gate then return true end
  end
  return false
end

--- Reads what was counted in the interval that ends. If the next one has ended, too, leaves it to that one: where the
--- kernel takes longer than an interval, the run would fall behind for ever.
---@param time number ns, the end of the interval
function InKernel:turn(time)
  if not counts_any(self) then return end
  local clock = ffi.new 'struct session_clock'
  C.session_read_clock(self.run.session, clock)
  if sys.now(clock.base) - time >= self.run.interval then return end
  read(self, self.switch:turn(), false)
  self._has_turned = true
end

--- Returns the accounts of what programs have added up so far, always of the same offers. What was counted before the
--- last call is in the sums. None if they were not read since then.
---@return Figures[]
function InKernel:running()
  local list = {}
  for _, offer in ipairs(self._has_turned and self.offers or {}) do
    if offer.running and not offer.gate then list[#list + 1] = offer:running() end
  end
  self._has_turned = false
  return list
end

--- Ends the programs. Called when the session ends.
function InKernel:stop()
  if self.second then self.second:off() end
  if self.witnesses then self.witnesses:mark 'before_end' end
  if #self.offers == 0 then return end
  self._last = self.switch:off()
  for _, link in ipairs(self._links) do link:close() end
end

--- Reads what was counted since the last interval, after stop().
function InKernel:finish()
  if self._last then read(self, self._last, true) end
  self.walks:finish()
  if not program.is_dry() then typed_events.finish(self.run) end
end

--- Returns the number of events that only programs took.
---@return number
function InKernel:count()
  local n = 0
  for _, offer in ipairs(self.offers) do
    if offer.count then
      n = n + offer:count()
    else
      for _, events in pairs(offer.by_event and offer:by_event() or {}) do n = n + events end
    end
  end
  return n
end

--- Returns the accounts of what programs have added up.
---@return Figures[]
function InKernel:figures()
  local list = {}
  for _, offer in ipairs(self.offers) do
    for _, f in pairs(offer.figures and not offer.gate and { offer:figures() } or {}) do list[#list + 1] = f end
  end
  return list
end

--- Returns what perf's counter says about an event that programs took, and a line if they differ. Call it when the
--- session has stopped.
---@param event Event
---@param n number that programs took, or missed and counted
---@param is_all boolean each one that passes the kernel's part of the filter
---@return number? count nil: unknown
---@return string? line
function InKernel:witness(event, n, is_all)
  local found = self.witnesses and self.witnesses:of(event)
  if not found then return end
  if not is_all then found.least = 0 end
  return found.count, witnesses.difference(event.name, n, found)
end

--- Returns the figures of an event that programs have counted or paired.
---@param event Event
---@param n number
---@param is_all boolean each one that passes the kernel's part of the filter
---@return Figures
function InKernel:_figures_of(event, n, is_all)
  local loaded, filter, user = self._programs[event], event.filters.kernel, event.filters.user
  -- Those that happened while the program had interrupted itself.
  local missed = loaded and tonumber(C.bpf_recursion_misses(loaded.fd) - self._missed[event]) or 0
  local counted, doubt = self:witness(event, n + missed, is_all and not user)
  if user then filter = filter and filter .. ' && ' .. user or user end
  return { name = event.name, way = event.route.way, fired = n + missed, lost = missed, read = n, is_missed = true,
    counted = counted, doubt = doubt, rejected = {}, filters = { kernel = filter }, gate = event.gate,
    is_extra = event:is_aside() }
end

--- Returns the figures of the events that programs have counted or paired, when the session has stopped.
---@return Figures[]
function InKernel:taken()
  local by_event, list = {}, {}
  for _, offer in ipairs(self.offers) do
    for event, n in pairs(not offer.gate and offer.by_event and offer:by_event() or {}) do
      by_event[event] = self:_figures_of(event, n, offer.sees_all ~= nil and offer:sees_all(event))
    end
  end
  for _, event in ipairs(self.run.events.list) do list[#list + 1] = not event.is_derived and by_event[event] or nil end
  return list
end

--- Does what witness() does for an event that is captured.
---@param event Event
---@param n number that were written
---@return number? count
---@return string? line
function InKernel:recount(event, n)
  local level = event.route.level -- a program that checks guards leaves out more than the kernel's filter does
  return self:witness(event, n, level == 'kernel' or level == 'all' and not event.filters.user)
end

return in_kernel
