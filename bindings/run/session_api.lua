-- SPDX-License-Identifier: GPL-2.0-only
--- The third argument of start(): a script's access to its run.
local ffi = require 'ffi'
local attach = require 'bindings.select.attach'
local bit = require 'bit'
local bpf = require 'bindings.bpf.program'
local caches = require 'bindings.run.caches'
local cgroups = require 'bindings.run.cgroups'
local check = require 'bindings.base.check'
local condition = require 'bindings.select.condition'
local countable = require 'bindings.base.countable'
local counts = require 'bindings.run.counts'
local cpu_times = require 'bpf.ways.cpu_times'
local doubts = require 'bindings.pairs.doubts'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local output = require 'bindings.print.output'
local sched_switch = require 'bindings.expr.sched_switch'
local public_event = require 'bindings.view.public_event'
local recorder = require 'bindings.run.recorder'
local recorded = require 'bindings.select.recorded'
local sampling = require 'bindings.view.sampling'
local slots = require 'bindings.run.slots'
local sys = require 'bindings.base.sys'
local tally = require 'bpf.ways.count'
local task_states = require 'bpf.ways.states'
local views = require 'bindings.view.views'

local C = ffi.C
local session_api = {}

--- The settings of session.want() and their Lua types.
local WANTS = { stacks = 'boolean', only_threads = 'boolean', own_exit_n = 'boolean', prints_events = 'boolean' }

--- Functions are called without a colon: `session.now()`.
---@class Session
---@field per_thread boolean events are attached to threads (-p, -t, a workload) instead of CPUs
---@field named_threads boolean the user named threads, even if the profiler is `everywhere`
---@field inherits boolean new threads and child processes are followed
---@field is_source boolean the profiler is an event source of another one: of its handlers only `describe` is called,
--- unless it calls session.gate()

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

  local own_states = {} -- of a source

  --- Raises an error in handlers, because the events are already open.
  local function check_start(name)
    if instance.settled then error(name .. ': only valid in start()', 3) end
  end

  -- Events ---------------------------------------------------------------------------------------

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

  --- Requests settings beyond the options. Only valid in start().
  ---
  ---   session.want { stacks = true }
  ---@param wants SessionWants
  function api.want(wants)
    check_start 'session.want'
    check.is(wants, 'table', 'session.want takes a table')
    for name, value in pairs(wants) do
      local expected = WANTS[name]
      if not expected then
        error(("session.want: unknown setting '%s'%s"):format(tostring(name),
          nearest.hint(tostring(name), nearest.keys(WANTS))), 2)
      elseif type(value) ~= expected then
        error(('session.want: %s is a %s, not a %s'):format(name, type(value), expected), 2)
      end
      instance.wants[name] = value
    end
  end

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

  --- Adds up how long tasks are in their states, in the kernel if possible. Only valid in start().
  ---@param settings TaskStatesSettings
  ---@return TaskStatesOffer
  function api.task_states(settings)
    check_start 'session.task_states'
    return task_states.new(instance, settings)
  end

  --- Adds up how long tasks run on each CPU, in the kernel if possible. Only valid in start().
  ---@param settings CpuTimesSettings
  function api.cpu_times(settings)
    check_start 'session.cpu_times'
    cpu_times.new(instance, settings)
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

  --- Loads BPF programs, which are unloaded when the run ends. Only for live events. Only valid in start().
  ---@param params BpfParameters
  ---@return Bpf
  function api.bpf(params)
    check_start 'session.bpf'
    if run.is_again then error('the script loads BPF programs, so it must be started again', 2) end
    return bpf.load(instance, params)
  end

  --- Creates a flight recorder: the kernel keeps the newest events of all CPUs and overwrites the oldest. They cost
  --- this process nothing until `recorder:dump` asks for a moment that has just been. Only for live events. Only valid
  --- in start().
  ---
  ---   local recorder = session.recorder { events = 'sched:*', keep = '64M' }
  ---@param settings RecorderSettings
  ---@return Recorder
  function api.recorder(settings)
    check_start 'session.recorder'
    return recorder.new(instance, settings)
  end

  --- Calls a function when a file has been created, written or replaced, at most 0.1 s later. Its folder must exist.
  --- Writing through another hard link of the file is not noticed. Only for live events. Only valid in start().
  ---
  ---   session.on_file('/run/dump-now', function() recorder:dump { before = '1s' } end)
  ---@param path string
  ---@param call fun()
  function api.on_file(path, call)
    check_start 'session.on_file'
    check.is(path, 'string', 'session.on_file takes the path of a file')
    if path == '' then error('session.on_file takes the path of a file, which is empty', 2) end
    local found = sys.stat(path)
    if path:find '/$' or found and found.isdir then
      error(("session.on_file takes the path of a file, but '%s' is a folder"):format(path), 2)
    end
    check.is(call, 'function', 'session.on_file takes a function')
    if run.is_recorded then failure.usage('%s: session.on_file is for live events', instance.name) end
    local message = not instance.parent and run:on_file(path, call)
    if message then error('session.on_file: ' .. message, 2) end
  end

  --- Returns an array of n slots, each of which can keep an event after its handler has returned. Unused slots cost no
  --- memory.
  ---
  ---   local started = session.slots(threads.MAX)
  ---   started:put(ev._tid, ev)
  ---   out:print_event(started:get(ev._tid))
  ---@param n integer
  ---@return Slots
  function api.slots(n) return slots.new(n, services.any) end

  --- Returns what the version of the script before, which --watch has replaced, had under this name. Otherwise calls
  --- make() and returns the result. Only valid in start().
  ---
  ---   local waits = session.state('waits', function() return hist.new() end)
  ---@generic T
  ---@param name string
  ---@param make fun(): T
  ---@return T
  function api.state(name, make)
    check_start 'session.state'
    check.is(name, 'string', 'session.state takes a name')
    check.is(make, 'function', 'session.state takes a function that makes the value')
    local states = instance.parent and own_states or run.states
    if states[name] ~= nil then error(("session.state: '%s' exists already"):format(name), 2) end
    local value = not instance.parent and run.kept and run.kept[name]
    if value == nil or value == false then value = make() end
    if value == nil then error(("session.state: the function for '%s' returns nothing"):format(name), 2) end
    states[name] = value
    return value
  end

  -- Expressions ----------------------------------------------------------------------------------

  --- Compiles a C expression over the fields of an event, such as the value of the attributes key= and num=.
  ---
  ---   local key = session.expression(event, 'dev << 32 | sector')
  ---   count:add(1, key.value(ev))
  ---@param event Event
  ---@param text string
  ---@param allow_system? boolean allow calls of system()
  ---@return Expression
  function api.expression(event, text, allow_system)
    local real = public_event.one(event, 'session.expression')
    check.is(text, 'string', 'session.expression takes a C expression')
    return services.expression(real, text, allow_system)
  end

  --- Compiles a C expression whose value is a number.
  ---@param event Event
  ---@param text string
  ---@param what? string its name in messages, such as 'num'
  ---@return fun(ev: Ev): number? value rounded beyond 2^53; nil after a division by zero
  function api.number(event, text, what)
    local real = public_event.one(event, 'session.number')
    check.is(text, 'string', 'session.number takes a C expression')
    return services.number(real, text, what)
  end

  --- Compiles a C expression over one unsigned 64-bit number.
  ---
  ---   local is_large = session.condition('data', 'data > 4096')
  ---@param name string name of the number in the expression
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

  --- Returns a function that formats keys according to the attribute printkey= of an event.
  ---@param event Event
  ---@return (fun(key: number|integer64): string)? print nil: the event has no printkey=
  function api.key_printer(event) return services.key_printer(public_event.one(event, 'session.key_printer')) end

  --- Returns a function that adds slices to the file of --export: what the script has found out between two times.
  --- Slices of a key must not overlap, except with `nested`, and come in the order of their ends.
  ---
  ---   local slice = session.slices { by = 'tid', names = { 'asleep', 'waiting' } }
  ---   if slice then slice(1, ev.pid, since, ev._time) end
  ---@param settings { by: 'tid'|'cpu'|'key', names: string[], nested?: boolean, key_text?: fun(key: integer): string }
  --- by: what keys are
  ---@return (fun(kind: integer, key: integer, from: number, to: number))? slice kind: index in names; nil without
  --- --export
  function api.slices(settings)
    check.is(settings, 'table', 'session.slices takes a table')
    check.is(settings.names, 'table', 'session.slices takes a list of names')
    return run.export and run.export:script_slices { by = settings.by, names = settings.names,
      nested = settings.nested, key_text = settings.key_text }
  end

  --- Returns the bit of prev_state that marks a preempted task. It differs between kernels.
  ---@param event Event sched:sched_switch
  ---@return integer bit 0: the kernel does not report preemption
  function api.preempted_state(event)
    return sched_switch.preempted(public_event.one(event, 'session.preempted_state'))
  end

  -- Names, addresses and stacks ------------------------------------------------------------------

  --- Returns the last name of a thread, which may have exited.
  ---@param tid integer
  ---@return string name '<...>' if unknown
  function api.task_name(tid)
    check.is(tid, 'number', 'session.task_name takes a thread id')
    return output.safe(services.task_name(tid, math.huge))
  end

  --- Returns the name of a system call on this machine or the recording's.
  ---@param nr integer
  ---@return string name the number if it is unknown
  function api.syscall_name(nr)
    check.is(tonumber(nr), 'number', 'session.syscall_name takes the number of a system call')
    return services.expression_env.syscall_name(nr)
  end
  countable.add_text(api.syscall_name)

  --- Returns the name of a control group of this machine.
  ---@param id number `ev._cgroup`
  ---@return string name its path from the root, '/' for the root; the id if the group is unknown or gone
  function api.cgroup_name(id)
    check.is(tonumber(id), 'number', 'session.cgroup_name takes the id of a control group (ev._cgroup)')
    return cgroups.name(tonumber(id))
  end

  --- Returns the registers of a sample. Its event must have been requested with sample = { 'regs_user' } or
  --- { 'regs_intr' }.
  ---@param ev Ev
  ---@param part? 'regs_user'|'regs_intr' default: 'regs_user'
  ---@return { name: string, value: integer64 }[]? list in the kernel's order; nil if the sample has none, as for kernel
  --- threads
  function api.registers(ev, part)
    if part ~= nil and part ~= 'regs_user' and part ~= 'regs_intr' then
      error(("session.registers takes 'regs_user' or 'regs_intr', not %s"):format(check.shown(part)), 2)
    end
    return sampling.registers(session, views.event(ev, 'session.registers'), part)
  end

  --- Returns the stack whose only frame is an address. name: the caller, for messages.
  local function address_id(ev, address, name)
    local e = views.event(ev, name)
    if type(address) ~= 'number' and not tonumber(address) then
      error(('%s takes an address, not %s'):format(name, check.shown(address)), 3)
    end
    if C.session_stacks(session, 0) == nil then error(name .. ' requires an event with resolve = true', 3) end
    return C.session_address(session, e, address)
  end

  --- Looks up an address in the kernel, or in the event's process at the time of the event. At least one event must
  --- record stacks or have been requested with resolve = true. Addresses of data have names if an event was requested
  --- with resolve = 'data', such as `session.event { 'syscalls:sys_enter_write', resolve = 'data' }`: those of global
  --- variables, heap, stack, and mapped files. Unmapping is not reported, so the name may be that of what was there,
  --- and the kernel reports a heap as '[anon]' until it has grown. A recording has what was recorded: that of a script
  --- which resolves data, or of `perf record -d`.
  ---@param ev Ev
  ---@param address number|integer64
  ---@return Frame? frame nil if unknown
  function api.address(ev, address) return services.frames.list(address_id(ev, address, 'session.address'))[1] end

  --- Like session.address(), but returns only text. It is much cheaper for addresses that recur.
  ---@param ev Ev
  ---@param address number|integer64
  ---@return string text 'symbol+0x1c', '[heap]' or '[libc.so.6]' for data without a symbol, or else the address in
  --- hexadecimal
  function api.address_text(ev, address)
    return services.frames.symbol_text(address_id(ev, address, 'session.address_text')) or ('%016x'):format(address)
  end

  local function check_stack(id, name)
    if type(id) ~= 'number' then
      error(('%s takes a stack, such as ev._stack, not %s'):format(name, check.shown(id)), 3)
    end
  end

  --- Returns the frames of a stack, innermost first: kernel frames, then user frames.
  ---@param stack integer `ev._stack`
  ---@return Frame[]
  function api.frames(stack)
    check_stack(stack, 'session.frames')
    return services.frames.list(stack)
  end

  --- Returns the frames of a stack as lines: '000055784e09c1de main+0x10e (/tmp/leak)'.
  ---@param stack integer
  ---@return string[]
  function api.stack_lines(stack)
    check_stack(stack, 'session.stack_lines')
    return services.frames.lines(stack)
  end

  --- Returns the same as one text of indented lines.
  ---@param stack integer
  ---@return string
  function api.stack_text(stack)
    check_stack(stack, 'session.stack_text')
    return services.frames.text(stack)
  end

  --- Stores the names of the frames of a stack in tables that the caller reuses, for scripts that read many stacks.
  ---@param stack integer
  ---@param names string[] receives the names, innermost first; '[libc.so.6]' if only the file is known
  ---@param kinds string[] receives 'k' for kernel, 'j' for JIT-compiled code, 'i' for inlined, 'u' for other functions;
  --- '?' if only the file is known
  ---@return integer n number of frames
  function api.frame_names(stack, names, kinds)
    check_stack(stack, 'session.frame_names')
    return services.frames.names(stack, names, kinds)
  end

  --- Frees all stacks if there are too many distinct ones. Values of `ev._stack` that the script has kept are then
  --- invalid.
  function api.forget_stacks() services.frames.forget() end

  --- Returns for each CPU the first CPU that shares its cache at a level, on this machine or the recording's.
  ---@param level integer from 1
  ---@return table<integer, integer>? first by CPU; nil if unknown
  function api.cache_sharers(level)
    check.is(level, 'number', 'session.cache_sharers takes a cache level')
    return caches.sharers(run, level)
  end

  -- Time and end ---------------------------------------------------------------------------------

  local clock = ffi.new 'struct session_clock'
  local error_between = doubts.between(run)

  --- Returns how far the time between two events may be off because they are of different machines (`pull=`). If the
  --- events are closer together, it is not known which came first.
  ---@param first_class integer `class` of the one event
  ---@param second_class integer `class` of the other event
  ---@return number ns 0 if both are of the same machine
  function api.clock_error(first_class, second_class)
    check.is(first_class, 'number', 'session.clock_error takes the class of an event')
    check.is(second_class, 'number', 'session.clock_error takes the classes of two events')
    return error_between(first_class, second_class)
  end

  --- Returns the current time on the scale of `ev._time`. Only for live events.
  ---@return number ns
  function api.now()
    C.session_read_clock(session, clock)
    return sys.now(clock.base)
  end

  --- Returns the zero of `ev._time` on the clock of the events, as printed by perf. It is known after the first event.
  ---@return number ns
  function api.time_base()
    C.session_read_clock(session, clock)
    return clock.base
  end

  --- Returns a time as it is printed with events in JSON and CSV: in seconds, or with --tsc in cycles.
  ---@param time number ns, as in `ev._time`
  ---@return number|integer64
  function api.printed_time(time)
    check.is(time, 'number', 'session.printed_time takes a time')
    return run.axis.value(time)
  end

  --- Ends the run: handlers get no more events, only `stop` is called.
  function api.stop()
    run:stop()
    run.stopped[0] = 1
  end

  return setmetatable({}, {
    __index = function(_, name)
      local member = api[name]
      if member == nil then
        error(("session has no '%s'%s"):format(tostring(name), nearest.hint(tostring(name), nearest.keys(api))), 2)
      end
      return member
    end,
    __newindex = function() error('session is read-only', 2) end,
  })
end

--- Settings of session.want().
---@class SessionWants
---@field stacks? boolean true: all events of the profiler record stacks, as with -g; false: even with -g, only events
--- with event:set { stack = true } or the attribute `stack` do
---@field only_threads? boolean for a profiler that is `everywhere`: the kernel may drop events that are not about the
--- threads named by the user. The events must have no filters and must not be printed
---@field own_exit_n? boolean the script implements -N: the run continues until it calls session.stop()
---@field prints_events? boolean the script prints each event itself, so -vv need not

return session_api
