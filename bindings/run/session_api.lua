-- SPDX-License-Identifier: GPL-2.0-only
--- What start() gets as its third argument: the run that a script takes part in.
local ffi = require 'ffi'
local attach = require 'bindings.select.attach'
local bit = require 'bit'
local bpf = require 'bindings.bpf.program'
local caches = require 'bindings.run.caches'
local check = require 'bindings.base.check'
local condition = require 'bindings.select.condition'
local counts = require 'bindings.run.counts'
local nearest = require 'bindings.base.nearest'
local output = require 'bindings.print.output'
local prev_state = require 'bindings.expr.prev_state'
local public_event = require 'bindings.view.public_event'
local recorded = require 'bindings.select.recorded'
local sampling = require 'bindings.view.sampling'
local slots = require 'bindings.run.slots'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local C = ffi.C
local session_api = {}

--- What session.want() takes, and the Lua type of each.
local WANTS = { stacks = 'boolean', only_threads = 'boolean', own_exit_n = 'boolean', prints_events = 'boolean' }

--- Its functions need no colon: `session.now()`.
---@class Session
---@field per_thread boolean the events are those of threads (-p, -t, a workload), not those of CPUs
---@field named_threads boolean the user has named threads, even if the profiler is `everywhere`
---@field inherits boolean new threads and children of these are followed
---@field is_source boolean the profiler is a source of events for another one: of its handlers only `describe` is
--- called

--- The functions, which need no colon: session.now().
---@param instance Instance
---@return Session
function session_api.new(instance)
  local run, set = instance.run, instance.set
  local services, session, opt, workload = run.services, run.session, run.opt, run.workload
  ---@class Session
  local api = {
    per_thread = attach.per_thread(opt, workload, run.everywhere),
    named_threads = attach.names_threads(opt, workload),
    inherits = attach.inherits(opt, workload) and true or false,
    is_source = instance.parent ~= nil,
  }

  --- What decides about what is opened comes too late in a handler.
  local function check_start(name)
    if instance.settled then error(name .. ' is for start(): the run has begun', 3) end
  end

  -- Events ---------------------------------------------------------------------------------------

  --- Asks for an event that the profiler needs besides those of `-e`.
  ---
  ---   local clock = session.event { 'cpu-clock', freq = 99, exclude_idle = true, stack = true }
  ---   return { [clock] = function(ev) ... end }
  ---@param params EventParameters
  ---@return Event
  function api.event(params)
    check_start 'session.event'
    return public_event.of(set:request(params))
  end

  --- Whether this kernel and machine, or the recording, has an event.
  ---@param name string 'cycles', 'sched:sched_switch'
  ---@return boolean
  function api.supports(name)
    check.is(name, 'string', 'session.supports takes the name of an event')
    return set.catalog:supports(name)
  end

  --- The names of perf's own events in the recording, such as 'cycles:u'.
  ---@return string[]? names nil: the events are live
  function api.recorded() return set.catalog.recorded and recorded.perf_event_names(set.catalog.recorded) or nil end

  --- Asks for more than the options say. Only in start().
  ---
  ---   session.want { stacks = true }
  ---@param wants SessionWants
  function api.want(wants)
    check_start 'session.want'
    check.is(wants, 'table', 'session.want takes a table')
    for name, value in pairs(wants) do
      local expected = WANTS[name]
      if not expected then
        error(("session.want: there is no '%s'%s"):format(tostring(name),
          nearest.hint(tostring(name), nearest.keys(WANTS))), 2)
      elseif type(value) ~= expected then
        error(('session.want: %s is a %s, not a %s'):format(name, type(value), expected), 2)
      end
      instance.wants[name] = value
    end
  end

  --- Lets the kernel count events, instead of recording each of them. They need no handlers.
  ---
  ---   local counts = session.count(opt.event, { every = 1e8 })
  ---@param events Event[]|Event[][]|string[] events, as options hold them too, or what -e takes
  ---@param settings? CountSettings
  ---@return Counts
  function api.count(events, settings)
    check_start 'session.count'
    return counts.new(instance, events, settings)
  end

  --- Lets each sample of an event say how many events were counted on its CPU so far, itself included: their
  --- difference to the samples that have arrived were lost. Only for live events of CPUs.
  ---@param event Event
  ---@return fun(ev: Ev): number count
  function api.own_count(event)
    check_start 'session.own_count'
    local real = public_event.one(event, 'session.own_count')
    real.request.reads = C.READS_ITSELF
    return function(ev)
      local e = views.event(ev, 'what session.own_count() returned')
      if e.class ~= real.class or bit.band(e.flags, C.EVENT_KEPT) ~= 0 then
        error(('this is no sample of %s whose handler runs'):format(real.name), 2)
      end
      return tonumber(C.session_own_count(session, e))
    end
  end

  --- Loads BPF programs, which are unloaded when the run ends. Only for live events.
  ---@param params BpfParameters
  ---@return Bpf
  function api.bpf(params)
    check_start 'session.bpf'
    return bpf.load(instance, params)
  end

  --- Keeps events beyond their handlers, at most one under each number below n. Slots that are not used cost no
  --- memory.
  ---
  ---   local started = session.slots(threads.MAX)
  ---   started:put(ev._tid, ev)
  ---   out:print_event(started:get(ev._tid))
  ---@param n integer
  ---@return Slots
  function api.slots(n) return slots.new(n, services.any) end

  -- Expressions ----------------------------------------------------------------------------------

  --- Compiles a C expression over the fields of an event, such as those of the attributes key= and num=.
  ---
  ---   local key = session.expression(event, 'dev << 32 | sector')
  ---   count:add(1, key.value(ev))
  ---@param event Event
  ---@param text string
  ---@param allow_system? boolean whether system() may be called
  ---@return Expression
  function api.expression(event, text, allow_system)
    local real = public_event.one(event, 'session.expression')
    check.is(text, 'string', 'session.expression takes a C expression')
    return services.expression(real, text, allow_system)
  end

  --- Compiles a C expression whose value is a number.
  ---@param event Event
  ---@param text string
  ---@param what? string what messages call it, such as 'num'
  ---@return fun(ev: Ev): number? value rounded beyond 2^53; nil after a division by zero
  function api.number(event, text, what)
    local real = public_event.one(event, 'session.number')
    check.is(text, 'string', 'session.number takes a C expression')
    return services.number(real, text, what)
  end

  --- Compiles a C expression over one unsigned 64-bit number.
  ---
  ---   local is_large = session.condition('data', 'data > 4096')
  ---@param name string of the number in the expression
  ---@param text string
  ---@return fun(number: number|integer64): boolean
  function api.condition(name, text)
    check.is(name, 'string', 'session.condition takes the name of a number')
    check.is(text, 'string', 'session.condition takes a C expression')
    local value = ffi.new 'uint64_t[1]'
    local is_true = condition.compile(services, 'the event', { name }, text, value)
    return function(number)
      value[0] = number
      return is_true()
    end
  end

  --- A function that prints keys as the attribute printkey= of an event says.
  ---@param event Event
  ---@return (fun(key: number|integer64): string)? print nil: the event has no printkey=
  function api.key_printer(event) return services.key_printer(public_event.one(event, 'session.key_printer')) end

  --- The bit of prev_state that says that a task was preempted. It differs between kernels.
  ---@param event Event sched:sched_switch
  ---@return integer bit 0: the kernel does not tell
  function api.preempted_state(event)
    return prev_state.preempted(public_event.one(event, 'session.preempted_state'))
  end

  -- Names, addresses and stacks ------------------------------------------------------------------

  --- The last name of a thread, also of one that has ended.
  ---@param tid integer
  ---@return string name '<...>': not known
  function api.task_name(tid)
    check.is(tid, 'number', 'session.task_name takes the number of a thread')
    return output.safe(services.task_name(tid, math.huge))
  end

  --- The name of a system call of this machine, or of that of the recording.
  ---@param nr integer
  ---@return string name the number where it has no name
  function api.syscall_name(nr)
    check.is(tonumber(nr), 'number', 'session.syscall_name takes the number of a system call')
    return services.expression_env.syscall_name(nr)
  end

  --- The registers of a sample. Its event was asked for with sample = { 'regs_user' } or { 'regs_intr' }.
  ---@param ev Ev
  ---@param part? 'regs_user'|'regs_intr' 'regs_user' if not given
  ---@return { name: string, value: integer64 }[]? list in the order of the machine; nil: the kernel took none, as
  --- for a kernel thread
  function api.registers(ev, part)
    if part ~= nil and part ~= 'regs_user' and part ~= 'regs_intr' then
      error(("session.registers takes 'regs_user' or 'regs_intr', not %s"):format(check.shown(part)), 2)
    end
    return sampling.registers(session, views.event(ev, 'session.registers'), part)
  end

  --- Looks up an address, in the process of the event at its time, or in the kernel. Some event must record stacks,
  --- or have been asked for with resolve = true.
  ---@param ev Ev
  ---@param address number|integer64
  ---@return Frame? frame nil: nothing is known
  function api.address(ev, address)
    local e = views.event(ev, 'session.address')
    if type(address) ~= 'number' and not tonumber(address) then
      error(('session.address takes an address, not %s'):format(check.shown(address)), 2)
    end
    if C.session_stacks(session) == nil then error('session.address needs resolve = true of an event', 2) end
    return services.frames.list(C.session_address(session, e, address))[1]
  end

  local function check_stack(id, name)
    if type(id) ~= 'number' then
      error(('%s takes a stack, such as ev._stack, not %s'):format(name, check.shown(id)), 3)
    end
  end

  --- The frames of a stack, innermost first; those of the kernel come before those of user space.
  ---@param stack integer `ev._stack`
  ---@return Frame[]
  function api.frames(stack)
    check_stack(stack, 'session.frames')
    return services.frames.list(stack)
  end

  --- The frames of a stack as lines: '000055784e09c1de main+0x10e (/tmp/leak)'.
  ---@param stack integer
  ---@return string[]
  function api.stack_lines(stack)
    check_stack(stack, 'session.stack_lines')
    return services.frames.lines(stack)
  end

  --- The same as one text of indented lines.
  ---@param stack integer
  ---@return string
  function api.stack_text(stack)
    check_stack(stack, 'session.stack_text')
    return services.frames.text(stack)
  end

  --- The names of the frames of a stack, for scripts that look at very many: the tables are used again.
  ---@param stack integer
  ---@param names string[] gets the names, innermost first; '[libc.so.6]' where only the file is known
  ---@param kinds string[] gets 'k' kernel, 'j' code generated at run time, 'i' inlined, 'u' other; '?' where only
  --- the file is known
  ---@return integer n number of frames
  function api.frame_names(stack, names, kinds)
    check_stack(stack, 'session.frame_names')
    return services.frames.names(stack, names, kinds)
  end

  --- Makes room where there have been very many different stacks. What the script has kept of `ev._stack` is void
  --- then.
  function api.forget_stacks() services.frames.forget() end

  --- For each CPU, the first one of those that share its cache of a level, on this machine or that of the recording.
  ---@param level integer from 1
  ---@return table<integer, integer>? first by CPU; nil: not known
  function api.cache_sharers(level)
    check.is(level, 'number', 'session.cache_sharers takes the level of a cache')
    return caches.sharers(run, level)
  end

  -- Time and end ---------------------------------------------------------------------------------

  local clock = ffi.new 'struct session_clock'

  --- The time now, to be compared with `ev._time`. Only for live events.
  ---@return number ns
  function api.now()
    C.session_read_clock(session, clock)
    return sys.now(clock.base)
  end

  --- What `ev._time` counts from, on the clock of the events, as perf prints it. It is known once the first event has
  --- come.
  ---@return number ns
  function api.time_base()
    C.session_read_clock(session, clock)
    return clock.base
  end

  --- Ends the run. Events that were read already are still handled.
  function api.stop() run:stop() end

  return setmetatable({}, {
    __index = function(_, name)
      local member = api[name]
      if member == nil then
        error(("session has no '%s'%s"):format(tostring(name), nearest.hint(tostring(name), nearest.keys(api))), 2)
      end
      return member
    end,
    __newindex = function() error('session cannot be changed', 2) end,
  })
end

--- What session.want() takes.
---@class SessionWants
---@field stacks? boolean true: all events of the profiler record stacks, as with -g; false: only those do for
--- which event:set { stack = true } or an attribute asks, even with -g
---@field only_threads? boolean for a profiler that is `everywhere`: the kernel may leave out events that are not
--- about the threads that the user has named. The events must have no filters, and must not be printed
---@field own_exit_n? boolean -N is left to the script: the run goes on until it calls session.stop()
---@field prints_events? boolean the script prints each event itself, so -vv need not

return session_api
