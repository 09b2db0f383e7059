-- SPDX-License-Identifier: GPL-2.0-only
--- session.waits: how long tasks are off their CPU, by name, state and stack. A handler of switches adds that up, or a
--- BPF program does (bpf/tasks/wait_sums.lua) if nothing needs the events. Both call the script with the same figures.
local captures = require 'bpf.gen.capture'
local facade = require 'bindings.base.facade'
local ffi = require 'ffi'
local output = require 'bindings.print.output'
local public_event = require 'bindings.view.public_event'
local sys = require 'bindings.base.sys'
local wait_sums = require 'bpf.tasks.wait_sums'

local C = ffi.C
local waits = {}

---@class WaitsSettings
---@field event Event sched:sched_switch, with stacks
---@field handler fun(ev: Ev) that does the same
---@field row fun(name: string, state: integer, stack: integer, ns: number, count: integer, max: number) adds waits
---@field left_out fun(ns: number) adds the ns of waits that have no row
---@field no_stack integer stack of waits that have none
---@field before integer stack of waits that had begun before the run
---@field missed { switches: integer } becomes what the kernel did not report
---@field than? number ns: only longer waits count
---@field named? boolean only the threads that the run names count
---@field duration? number ns of the run
---@field needs_events? string why each event is needed

waits.verb = 'wait'
waits.name, waits.does, waits.has_stacks = 'waits', 'added up', true
waits.lacks = { 'reload', 'newest', 'each_event', 'filter' }

--- Returns why programs cannot add up the waits; nil if they can.
---@param facts Facts
---@param offer OfferFacts
---@return string?
function waits.refuses(facts, offer)
  if offer.asks[1] then return offer.asks[1] end
  if facts.events[offer.events[1]].has_stack_copy then return 'stacks are unwound from copies of their memory' end
  return facts.kernel.foreign_pids and "the kernel's thread ids are not those of this pid namespace" or nil
end

--- The switches of a script.
---@class WaitsOffer : Offer
---@field package _given WaitsSettings
---@field package _kernel? WaitSums
local WaitsOffer = { way = 'waits', attributes = {} }
WaitsOffer.__index = WaitsOffer

---@package
function WaitsOffer:facts() return { asks = { self._given.needs_events } } end

--- Loads the program.
---@package
---@param kernel InKernel
function WaitsOffer:load(kernel)
  local given, event = self._given, self.events[1]
  captures.check_kernel()
  self._run = kernel.run
  self._kernel = wait_sums.new { nr_cpus = kernel.switch.nr_cpus, nr_threads = kernel.facts.kernel.pid_max,
    sides = kernel.switch.sides, parts = event.request.callchain, max = event.request.attr.sample_max_stack,
    walker = kernel.walks:walker(event.request.callchain), than = given.than,
    threads = given.named and kernel:threads() or nil }
  kernel:probe(event, self._kernel:body(event.fields))
end

--- Lets the session know the mappings in which the stacks are.
---@package
function WaitsOffer:settle()
  C.session_want_stacks(self._run.session, self.events[1].request.callchain)
end

--- Returns CLOCK_MONOTONIC when the session began.
local function base(self) return tonumber(C.session_exact_time(self._run.session, 0)) end

---@package
---@param kernel InKernel
function WaitsOffer:start(kernel)
  local duration = self._given.duration
  self._until = duration and base(self) + math.floor(duration)
  for tid, one in pairs(self._first) do self._kernel:set_first(tid, one.state) end
  kernel.switch:on()
  self._kernel:limit(base(self), self._until)
  self.has_started = true
end

--- Returns the id of a stack by its halves.
local function stack_of(self, kernel, user)
  if kernel == wait_sums.BEFORE then return self._given.before end
  local found, pid, time = self._kernel:chain(self._chain, kernel, user)
  if not found then return self._given.no_stack end
  local event = self._event
  event.chain, event.pid, event.time = self._chain, pid, tonumber(time) - base(self)
  return C.session_stack(self._run.session, event)
end

--- Adds what was added up on a side to the script's rows.
---@package
---@param side integer
---@param is_last boolean
function WaitsOffer:turn(side, is_last)
  local given, kernel = self._given, self._kernel
  local function add(start, state, ns, count, max, name)
    name = output.safe(name or ffi.string(ffi.cast('const char *', start + 2)))
    given.row(name, state, stack_of(self, start[0], start[1]), ns, count, max)
  end
  kernel:take(side, function(state, sums, start)
    local ns = tonumber(sums.sum)
    if start then add(start, state, ns, tonumber(sums.count), tonumber(sums.max)) else given.left_out(ns) end
  end)
  if not is_last then return end
  local now = math.min(sys.now(), self._until or math.huge) -- no program runs any more
  kernel:each(now, function(state, ns, start, tid)
    local name = start[0] == wait_sums.BEFORE and self._first[tid].name or nil
    add(start, state, ns, 1, ns, name)
  end)
  given.missed.switches = kernel:counted 'switches'
  for name, what in pairs { stackless = 'waits have no stack: there are too many different ones',
    unkept = 'waits are missing: there are too many threads' } do
    local n = kernel:counted(name)
    if n > 0 then self._run.out:warn(('%s: %d %s'):format(self._run.name, n, what)) end
  end
end

--- Sets the state of a thread that is off its CPU at the start of the run.
---@param tid integer
---@param state integer
---@param name string
function WaitsOffer:set_first(tid, state, name)
  self._first[tid] = { state = state, name = name }
  if self.has_started then self._kernel:set_first(tid, state) end
end

--- Returns whether a program adds up the waits.
---@return boolean
function WaitsOffer:taken() return self.has_started or false end

local public = facade.class('waits', WaitsOffer, { 'set_first', 'taken' })

--- Offers the switches of a script to the kernel.
---@param instance Instance
---@param given WaitsSettings
---@return WaitsOffer
function waits.new(instance, given)
  local event = public_event.real(given.event)
  local self = setmetatable({ _given = given, _event = ffi.new 'struct event',
    _chain = ffi.new('uint64_t[?]', wait_sums.MAX_WORDS), _first = {}, events = { event },
    handlers = { [event] = given.handler } }, WaitsOffer)
  if instance.run.in_kernel and not instance.parent then instance.run.in_kernel:offer(self) end
  return public(self)
end

return waits
