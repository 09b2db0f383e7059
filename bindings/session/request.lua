-- SPDX-License-Identifier: GPL-2.0-only
--- What a script asks for in start(): events, counts, settings.
local bit = require 'bit'
local check = require 'bindings.base.check'
local cpu_times = require 'bpf.ways.cpu_times'
local counts = require 'bindings.session.counts'
local ffi = require 'ffi'
local sched_switch = require 'bindings.expr.sched_switch'
local public_event = require 'bindings.view.public_event'
local recorded = require 'bindings.select.recorded'
local sys = require 'bindings.base.sys'
local tally = require 'bpf.ways.count'
local task_states = require 'bpf.ways.states'
local waits = require 'bpf.ways.waits'
local views = require 'bindings.view.views'

local C = ffi.C
local request = {}

local EXEC = 'sched:sched_process_exec'

--- The settings of session.want() and their Lua types.
local WANTS = { stacks = 'boolean', stack_part = 'string', only_threads = 'boolean', own_exit_n = 'boolean',
  prints_events = 'boolean' }

--- Adds the functions about events.
---@param api Session
---@param of SessionParts
function request.events(api, of)
  local instance, set, check_start = of.instance, of.set, of.check_start

  --- Requests an event in addition to those of `-e`. Only valid in start().
  ---
  ---   local clock = session.event { 'cpu-clock', freq = 99, exclude_idle = true, stack = true }
  ---   return { [clock] = function(ev) ... end }
  --- Returns nil for a tracepoint that a recording lacks, if the script declares it as `optional`.
  ---@param params EventParameters
  ---@return Event
  function api.event(params)
    check_start 'session.event'
    if type(params) == 'table' and type(params[1]) == 'string' and instance:lacks(params[1]) then return end
    return public_event.of(set:request(params))
  end

  --- Requests the event at which a thread other than the first one of its process executes a program: the kernel gives
  --- it the id of the first one. For what is kept by thread. Only valid in start().
  ---@param like? Event the threads are those of the machine that sends it
  ---@return Event? event with the ids `old_pid` and `pid`; nil: they are not known, or the profiler is a source
  ---@return boolean? is_foreign the ids are those of the machine, but `ev._tid` is that of this pid namespace
  function api.id_changes(like)
    check_start 'session.id_changes'
    local machine = like and public_event.one(like, 'session.id_changes').machine
    local source = machine and set:on(machine) or set
    if instance.parent or machine and machine.vm or not source.catalog:supports(EXEC) then return end
    local event = source:request { EXEC }
    local is_sent = instance.opt.push and #instance.opt.push > 0 -- the kernel cannot evaluate it, but the receiver can
    if not is_sent then event:set_filter 'pid != old_pid' end
    instance.id_changes = event
    return public_event.of(event), not (machine or instance.run.is_recorded) and sys.has_foreign_pids()
  end

  --- Makes a profiler with a condition of its own decide which of its events it passes on when it is a source of
  --- another one. Its handlers and consumers are then called, except `interval`, `status` and `stop`, and must not
  --- print. The profiler that uses it gets the events that are passed to the returned function. Only valid in start().
  ---
  ---   local pass = session.gate()
  ---   return { [clock] = function(ev) if is_late(ev) then (pass or print_late)(ev) end end }
  ---@return (fun(ev: Ev))? pass nil: the profiler is not a source
  function api.gate()
    check_start 'session.gate'
    if not instance.parent then return end
    instance.is_gate = true
    return views.pass
  end
end

--- Adds the functions that say what is known of events.
---@param api Session
---@param of SessionParts
function request.known(api, of)
  local set = of.set

  --- Returns whether an event is available on this machine or in the recording.
  ---@param name string 'cycles', 'sched:sched_switch'
  ---@return boolean
  function api.supports(name)
    check.is(name, 'string', 'session.supports takes the name of an event')
    return set.catalog:supports(name)
  end

  --- Returns the names of perf's own events in the recording, such as 'cycles:u'.
  ---@return string[]? names nil for live events
  function api.recorded() return set.catalog.recorded and recorded.perf_event_names(set.catalog.recorded) or nil end

  --- Returns the bit of prev_state that marks a preempted task. It differs between kernels.
  ---@param event Event sched:sched_switch
  ---@return integer bit 0: the kernel does not report preemption
  function api.preempted_state(event)
    return sched_switch.preempted(public_event.one(event, 'session.preempted_state'))
  end
end

--- Adds the function that changes settings.
---@param api Session
---@param of SessionParts
function request.settings(api, of)
  local instance, check_start = of.instance, of.check_start

  --- Requests settings beyond the options. Only valid in start().
  ---
  ---   session.want { stacks = true }
  ---@param wants SessionWants
  function api.want(wants)
    check_start 'session.want'
    check.types(wants, WANTS, 'session.want')
    for name, value in pairs(wants) do instance.wants[name] = value end
  end
end

--- Adds the functions that count events.
---@param api Session
---@param of SessionParts
function request.counts(api, of)
  local instance, session, check_start = of.instance, of.run.session, of.check_start

  --- Makes the kernel count events instead of recording each of them. They need no handlers. Only valid in start().
  ---
  ---   local counts = session.count(opt.event, { every = 1e8 })
  ---@param events Event[]|Event[][]|string[] events, values of options, or texts as -e takes them
  ---@param settings? CountSettings
  ---@return Counts
  function api.count(events, settings)
    check_start 'session.count'
    return counts.new(instance, events, settings)
  end

  --- Creates a tally: it counts events, adds up values and fills histograms by key, in the kernel if possible. Only
  --- valid in start().
  ---
  ---   local calls = session.tally { keys = keys }
  ---   handlers[event] = calls:add(event, { key = { 'id' }, sums = { { into = counts, width = 1, at = 0 } } })
  ---@param settings { keys?: Keys, names?: table<integer, string|number> } keys: the ids of the events' keys; without
  --- it all events have the id 0; names: receives the name of each id
  ---@return Tally
  function api.tally(settings)
    check_start 'session.tally'
    check.is(settings, 'table', 'session.tally takes a table')
    return tally.new(instance, settings)
  end

  --- Makes each sample of an event contain the number of these events on its CPU so far, including itself. Subtract the
  --- number of received samples to get the number of lost ones. Only for live events on CPUs. Only valid in start().
  ---@param event Event
  ---@return fun(ev: Ev): number count returns that number
  function api.own_count(event)
    check_start 'session.own_count'
    local real = public_event.one(event, 'session.own_count')
    real.request.reads = C.READS_ITSELF
    return function(ev)
      local e = views.event(ev, 'the function of session.own_count()')
      if e.class ~= real.class or bit.band(e.flags, C.EVENT_KEPT) ~= 0 then
        error(('this is not a sample of %s in its handler'):format(real.name), 2)
      end
      return tonumber(C.session_own_count(session, e))
    end
  end
end

--- Adds the functions that add up the times of tasks, for the profilers that ship with profscript.
---@param api Session
---@param of SessionParts
function request.task_times(api, of)
  local instance, check_start = of.instance, of.check_start

  --- Adds up how long tasks run on each CPU, in the kernel if possible. Only valid in start().
  ---@param settings CpuTimesSettings
  ---@package
  function api.cpu_times(settings)
    check_start 'session.cpu_times'
    cpu_times.new(instance, settings)
  end

  --- Adds up how long tasks are in their states, in the kernel if possible. Only valid in start().
  ---@param settings TaskStatesSettings
  ---@return TaskStatesOffer
  ---@package
  function api.task_states(settings)
    check_start 'session.task_states'
    return task_states.new(instance, settings)
  end

  --- Adds up how long tasks are off their CPU, in the kernel if possible. Only valid in start().
  ---@param settings WaitsSettings
  ---@return WaitsOffer
  ---@package
  function api.waits(settings)
    check_start 'session.waits'
    return waits.new(instance, settings)
  end
end

return request
