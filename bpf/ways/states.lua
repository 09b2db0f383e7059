-- SPDX-License-Identifier: GPL-2.0-only
--- session.task_states: how long tasks are in their states. The handlers of a script add that up, or BPF programs do
--- (bpf/tasks/state_sums.lua) if nothing needs the events. Both fill the same histograms.
local capture = require 'bpf.gen.capture'
local captures = require 'bpf.ways.capture'
local cpu_clock = require 'bpf.ways.cpu_clock'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local outlier = require 'bpf.ways.outlier'
local outliers = require 'bpf.gen.sent_pairs'
local output = require 'bindings.print.output'
local public_event = require 'bindings.view.public_event'
local route = require 'bpf.plan.route'
local sched_switch = require 'bindings.expr.sched_switch'
local states = require 'bpf.tasks.state_sums'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local C = ffi.C
local task_states = {}

local MOST_NS = 2 ^ 53
local OUTLIER, OUTLIER_SIZE = ffi.typeof 'struct outlier *', ffi.offsetof('struct outlier', 'raw')
local common_type = ffi.typeof 'uint16_t *'

---@class TaskStatesSettings
---@field events { leaves: Event, enters?: Event, wakes: Event, born?: Event, moves?: Event } two of them may be one;
--- moves: of session.id_changes()
---@field handlers table<Event, fun(ev: Ev)> that do the same
---@field hists HistSet
---@field row fun(tid: integer, state: integer): integer returns the number of a histogram
---@field other fun(state: integer): integer returns that of threads without one
---@field missed { switches: integer, wakeups: integer } becomes what the kernel did not report
---@field by_thread? boolean
---@field only? boolean the events are only those of some sleeps
---@field all_but_sleep? boolean sleep in S is not counted
---@field than? number ns: `print` is called for longer states, except ON_CPU
---@field print? fun(tid: integer, state: integer, ns: number, ev: Ev)
---@field named? boolean only the threads that the run names count
---@field duration? number ns of the run
---@field needs_events? string why each event is needed

task_states.verb = 'state'
task_states.name, task_states.does = 'states', 'added up'
task_states.lacks = { 'reload', 'newest', 'each_event', 'filter' }

--- Returns why programs cannot add up the states; nil if they can.
---@param facts Facts
---@param offer OfferFacts
---@param calls integer see captures.refuses()
---@return string?
function task_states.refuses(facts, offer, calls)
  if offer.asks[1] then return offer.asks[1] end
  if facts.kernel.foreign_pids then return "the kernel's thread ids are not those of this pid namespace" end
  for _, one in ipairs(offer.sends) do
    local reason = captures.refuses(facts, facts.events[one.event], calls, one.is_other)
    if reason then return reason end
  end
end

--- The events of a script.
---@class TaskStatesOffer : Offer
---@field package _given TaskStatesSettings
---@field package _names table<integer, string>
---@field package _kernel? TaskStates
local TaskStatesOffer = { way = 'states', attributes = {}, measures_time = true }
TaskStatesOffer.__index = TaskStatesOffer

--- Returns what the events of the script are, by event.
local function roles_of(given)
  local roles, order = {}, {}
  local function add(kind, fields)
    local event = given.events[kind] and public_event.real(given.events[kind])
    if not event then return end
    if not roles[event] then roles[event], order[#order + 1] = { names = {} }, event end
    local role, field = roles[event], event.fields[fields.pid]
    role[kind], role.names[field] = field, event.fields[fields.comm]
    if kind == 'leaves' then role.state = event.fields.prev_state end
  end
  add('leaves', sched_switch.LEAVES)
  add('enters', sched_switch.ENTERS)
  add('wakes', { pid = 'pid', comm = 'comm' })
  add('born', { pid = 'pid', comm = 'comm' })
  return roles, order
end

--- Makes the programs send long states. Refuses what they cannot send.
local function plan_outliers(self, kernel)
  local size, ending = 0, {}
  for _, event in ipairs(self.events) do
    size = math.max(size, outliers.size(event.list))
    local role = self._roles[event]
    role.sample = { event = event.name, list = event.list, type = tonumber(event.request.attr.config) }
    if role.enters or role.wakes then ending[#ending + 1] = event end
  end
  local rings = kernel.captures:open(#ending)
  for i, event in ipairs(ending) do
    local sample = self._roles[event].sample
    sample.number, sample.id = rings.events + i - 1, kernel.captures:new_id()
  end
  self._ending = ending
  return { than = math.floor(math.min(math.max(self._given.than, 0), MOST_NS)), rings = rings, size = size,
    number = rings.events }
end

--- Returns the facts of the offer, see OfferFacts.
---@param index_of table<Event, integer>
---@return table
function TaskStatesOffer:facts(index_of)
  local sends = {}
  for i, event in ipairs(self._given.than and self.events or {}) do
    -- The wakeup of the current task, which runs, neither begins nor ends a state that is sent.
    sends[i] = { event = index_of[event], is_other = true }
  end
  return { asks = { self._given.needs_events }, sends = sends }
end

--- Loads the programs.
---@package
---@param kernel InKernel
function TaskStatesOffer:load(kernel)
  local given = self._given
  self._run, self._switch = kernel.run, kernel.switch
  self._ending = {}
  self._kernel = states.new {
    nr_cpus = kernel.switch.nr_cpus, nr_threads = kernel.facts.kernel.pid_max, sides = kernel.switch.sides,
    by_thread = given.by_thread,
    threshold = tonumber(C.hist_set_threshold(given.hists)), only = given.only, all_but_sleep = given.all_but_sleep,
    threads = given.named and kernel:threads() or nil,
    outliers = given.than and plan_outliers(self, kernel) or nil,
  }
  self._programs = {}
  for _, event in ipairs(self.events) do
    self._programs[event] = kernel:probe(event, self._kernel:body(self._roles[event]))
  end
  kernel:probe_id_changes(self._kernel:move_body())
  if not given.only then return end
  kernel:probe_exit(self._kernel:body { exits = true })
end

--- Returns a function that passes a sent state to the script.
local function receiver(self, event)
  local print, room = self._given.print, capture.raw_size(event.list)
  return function(ev)
    local e = views.event(ev, 'session.task_states')
    if e.raw_size < room + OUTLIER_SIZE then return end
    self._sent = self._sent + 1
    local o = ffi.cast(OUTLIER, e.raw + room)
    local tid, ns = tonumber(o.key), tonumber(o.ns)
    self._first = self:_view(o, e.time - ns)
    print(tid, o.kind, ns, ev)
    self._first = nil
  end
end

--- Returns the first event of a state; nil if it is not known.
function TaskStatesOffer:_view(o, time)
  if o.tag == 0 then return nil end
  local first = self._event
  first.time, first.class, first.period = time, self._classes[ffi.cast(common_type, o.raw)[0]], 1
  first.pid, first.tid, first.cpu, first.raw, first.raw_size = o.pid, o.tid, tonumber(o.cpu), o.raw, o.raw_size
  return ffi.cast(self._run.services.any, first)
end

--- Lets the session read the events that end long states.
---@package
---@param kernel InKernel
function TaskStatesOffer:settle(kernel)
  self._event, self._classes = ffi.new 'struct event', {}
  local plan = self._kernel.plan.outliers
  self._left = ffi.new('uint64_t[?]', plan and (OUTLIER_SIZE + plan.size) / 8 + 1 or 1)
  for _, event in ipairs(self.events) do self._classes[tonumber(event.request.attr.config)] = event.class end
  for _, event in ipairs(self._ending) do
    kernel.captures:read(event, self._programs[event], self._roles[event].sample.id)
    -- A task that wakes up itself runs, so common_flags are known.
    route.write(event.route, { has_no_flags = false,
      sent = ('states over %g ms are sent'):format(self._given.than / 1e6) })
    kernel.receivers[event] = receiver(self, event)
  end
end

--- Returns CLOCK_MONOTONIC when the session began.
local function base(self) return C.session_exact_time(self._run.session, 0) end

---@package
---@param kernel InKernel
function TaskStatesOffer:start(kernel)
  local duration = self._given.duration
  self._added = 0
  kernel.switch:on() -- on one CPU after the other; all begin at the same time
  self._kernel:limit(base(self), duration and base(self) + math.floor(duration))
  self._sent = 0
  self._began, self._limit = sys.now(), duration and tonumber(base(self)) + duration or math.huge
  self.has_started = true
  self._in_states, self._lasting, self._lasting_on = 0, 0, 0
  -- Of other tasks, the state is not known before the first event, nor are all states added up.
  if self._given.named and not self._given.only and not self._given.all_but_sleep then
    self._clocks, self._threads = cpu_clock.begin(self._run, true), cpu_clock.threads(self._run)
  end
end

local function check_added(code)
  if code ~= 0 then failure.raise 'out of memory for histograms' end
end

--- Adds what was counted on a side to the script's histograms.
---@package
---@param side integer
---@param is_last boolean
function TaskStatesOffer:turn(side, is_last)
  local given, kernel = self._given, self._kernel
  kernel:take(side, function(tid, state, sums, counts, name)
    local row = tid and given.row(tid, state) or given.other(state)
    check_added(C.hist_set_add_sums(given.hists, row, sums, counts))
    self._in_states = self._in_states + tonumber(sums.sum)
    if state == sched_switch.ON_CPU then self._added = self._added + tonumber(sums.sum) end
    if name then self._names[tid] = output.safe(name) end
  end, function(tid, state, bucket, count)
    check_added(C.hist_set_add_bucket(given.hists, given.row(tid, state), bucket, count))
  end)
  if not is_last then return end
  self._ended = sys.now() -- no program runs any more
  self._until = math.min(self._switch.off_time, self._limit)
  if self._clocks then self._clocks:finish(self._until) end
  self._alive = self._threads and cpu_clock.alive(self._threads)
  given.missed.switches, given.missed.wakeups = kernel:counted 'switches', kernel:counted 'wakeups'
  local unkept = kernel:counted 'unkept'
  if unkept > 0 then
    self._run.out:warn(('%s: %d events at which states began could not be kept, and may be missing'):format(
      self._run.name, unkept))
  end
end

--- Returns the account of the states that were too long.
local function sent_figures(self)
  if not self._given.than or self._run.stopped[0] ~= 0 then return end
  local n = outlier.counts(self._run, self._ending, self._sent)
  n.found = self._kernel:counted 'outliers'
  local f = outlier.figures(n)
  f.way = self.way
  return f
end

--- Returns the accounts of what was added up, and of what was sent.
---@package
---@return Figures
---@return Figures?
function TaskStatesOffer:figures()
  local doubt = self._clocks and self._clocks:difference(self._added + self._lasting_on) or self._threads
    and cpu_clock.lifetimes(self._in_states + self._lasting, self._alive, self._until - self._began) or nil
  return cpu_clock.figures(self._run.opt.cpus, self._ended - tonumber(base(self)), self._added, self.way, doubt),
    sent_figures(self)
end

-- What scripts can ask -----------------------------------------------------------------------------

--- Sets the state of a thread at the start of the run, if programs add up the states.
---@param tid integer
---@param state? integer nil: it runs, or waits for a CPU, as the next switch shows
---@return boolean done
function TaskStatesOffer:set_first(tid, state)
  if self.has_started and state then self._kernel:set_first(tid, state) end
  return self.has_started or false
end

--- At the end of the run: calls a function for each thread that the run names whose state programs know.
---@param call fun(tid: integer, state: integer, since: number)
function TaskStatesOffer:each(call)
  if not self.has_started then return end
  local begun = base(self)
  self._lasting, self._lasting_on = 0, 0
  self._kernel:each(function(tid, state, since)
    local from = since and tonumber(since - begun) or 0
    local ns = math.max(self._until - tonumber(begun) - from, 0)
    self._lasting = self._lasting + ns
    if state == sched_switch.ON_CPU then self._lasting_on = self._lasting_on + ns end
    call(tid, state, from)
  end)
end

--- Returns the event that began the state that is printed, if a program has kept it.
---@param tid integer
---@param state integer
---@param since? number of a state that has not ended
---@return Ev?
function TaskStatesOffer:first(tid, state, since)
  if not since or not self.has_started then return self._first end
  local out = ffi.cast(OUTLIER, self._left)
  return self._kernel:kept_event(tid, state, base(self) + since, out) and self:_view(out, since) or nil
end

--- Returns the names of threads that programs have seen, by thread, since the last call.
---@return table<integer, string>
function TaskStatesOffer:names()
  local names = self._names
  self._names = {}
  return names
end

local public = facade.class('task_states', TaskStatesOffer, { 'set_first', 'each', 'first', 'names' })

--- Offers the events of a script to the kernel.
---@param instance Instance
---@param given TaskStatesSettings
---@return TaskStatesOffer
function task_states.new(instance, given)
  local self = setmetatable({ _given = given, _names = {}, handlers = {} }, TaskStatesOffer)
  self._roles, self.events = roles_of(given)
  self.spares = { public_event.real(given.events.moves) }
  for event, handler in pairs(given.handlers) do self.handlers[public_event.real(event)] = handler end
  if instance.run.in_kernel and not instance.parent then instance.run.in_kernel:offer(self) end
  return public(self)
end

return task_states
