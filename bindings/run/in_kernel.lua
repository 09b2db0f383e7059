-- SPDX-License-Identifier: GPL-2.0-only
--- Decides which events of a run BPF programs take instead of perf (--capture), and runs these programs from the start
--- of the session to its end. A taker declares what it does with its events. If it is refused, it gets them through
--- perf like any handler; the result is the same.
local cpu_list = require 'bindings.base.cpu_list'
local asm = require 'bpf.gen.asm'
local attach = require 'bindings.select.attach'
local captures = require 'bindings.run.captures'
local cgroups = require 'bindings.run.cgroups'
local expr = require 'bindings.expr.compile'
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local gates = require 'bindings.run.gates'
local libbpf = require 'bindings.bpf.libbpf'
local probe = require 'bpf.gen.probe'
local processes = require 'bindings.select.processes'
local share = require 'bpf.gen.share'
local switch = require 'bpf.gen.switch'
local sys = require 'bindings.base.sys'
local system_calls = require 'bpf.gen.system_calls'
local targets = require 'bpf.gen.targets'
local thread_events = require 'bpf.gen.thread_events'

local C = ffi.C

local in_kernel = {}

--- Takes events in the kernel, if it is allowed to. All functions may refuse (asm.refuse()) until start().
---@class Taker
---@field does string what its programs do with the events: 'counted', 'captured', 'paired'
---@field events Event[] that it takes; all of them or none
---@field consumer? Consumer that would take its events through perf
---@field handlers? table<Event, function> what would handle its events through perf
---@field attributes? table<string, boolean> the attributes of events that it understands, beside alias=
---@field load fun(self, kernel: InKernel, checked: contract.Handlers) makes the maps and, by kernel:probe(), the
--- programs
---@field settle? fun(self, kernel: InKernel) called when it is accepted, before the events are opened
---@field start? fun(self, kernel: InKernel) called when the programs run
---@field turn? fun(self, side: integer, is_last: boolean) reads what was written to a side of the maps, before the
--- handlers `interval` and `stop` are called
---@field count? fun(self): number events so far, for the statistics
---@field gate? Instance the source whose condition it evaluates: only the events that are passed on come here, and
--- nothing is counted
---@field refusal? string why it was not accepted

---@class InKernel
---@field switch Switch
---@field takers Taker[] offered; after decide(), those that were accepted
---@field captures Captures
---@field run Run
---@field calls SystemCalls
---@field is_dear? boolean most events are those of other tasks than the targets
---@field are_calls_dear? boolean most system calls are not those whose events the run reads
local InKernel = {}
InKernel.__index = InKernel

---@param run Run
---@return InKernel
function in_kernel.new(run)
  local self = setmetatable({ takers = {}, run = run, calls = system_calls.new(), _links = {},
    _droppers = {} }, InKernel)
  self.captures = captures.new(self)
  return self
end

--- Adds a taker. Only before the session starts.
---@param taker Taker
function InKernel:offer(taker) self.takers[#self.takers + 1] = taker end

local SHORTEST_INTERVAL = 1e8 -- ns: at the end of one, Switch:turn() waits for all CPUs, usually 10 to 40 ms

--- Returns why programs cannot have the events of a run; nil if they can.
---@param run Run
---@return string?
local function refuses_programs(run)
  local opt = run.opt
  if opt.capture == 'perf' then return 'as --capture says' end
  if run.is_recorded or run:pulls() then return 'they are not those of this machine now' end
  for _, event in ipairs(run.events.list) do
    if event.request.everywhere == 1 then return ('%s is read in all tasks'):format(event.name) end
  end
  local option = run:needs 'perf_samples'
  if option then return option end
  if run.in_kernel.is_dear then return 'most of these events happen in other tasks, which would pay for it' end
end

-- With targets, a program costs other tasks 50 to 70 ns more per event than perf does, and saves the targets 460 ns.
local MOST_OTHERS = 8 -- for each event of a target
local MEASURED, RARE = 20, 200 -- ms; fewer events in that time cost nothing worth mentioning
local MOST_MEASURED = 8 -- kinds of events: loading a program for each takes time

--- Returns the events whose share is to be measured: those of system calls, and with targets also others.
---@param list Event[]
---@param has_targets boolean
---@return ShareOf[]
local function measured(list, has_targets)
  local found, seen, of_calls = {}, {}, {}
  for _, event in ipairs(list) do
    local is_sampled = event.request.counted == 0 and not event.strings
    if is_sampled and captures.is_known(event) and not seen[event.name] and #found < MOST_MEASURED then
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

--- Notes whether programs would cost the other tasks, or other system calls, more than they save. A workload does not
--- run yet.
function InKernel:_weigh()
  local run = self.run
  local opt = run.opt
  local has_groups = opt.cgroups and #opt.cgroups > 0
  local has_threads = (opt.pids or opt.tids) and not run.everywhere
  if opt.capture ~= 'auto' or refuses_programs(run) or attach.is_target(opt, run.workload) then return end
  asm.attempt(function()
    local list = measured(run.events:shown(), has_groups or has_threads)
    if #list == 0 then return true end
    local tasks = has_groups and targets.groups(cgroups.find(opt.cgroups)) or has_threads
      and share.tasks(opt.pids and processes.pids(opt.pids) or {}, opt.tids or {}) or nil
    local found = share.measure(list, tasks, MEASURED)
    local function are_dear(calls)
      local ours, others = 0, 0
      for i, of in ipairs(list) do
        if (of.numbers ~= nil) == calls then ours, others = ours + found[i].ours, others + found[i].others end
      end
      return others > RARE and others > MOST_OTHERS * ours
    end
    self.is_dear, self.are_calls_dear = are_dear(false), are_dear(true)
    return true
  end)
end

--- Returns why a program cannot have an event of a system call.
---@param event Event
---@return string?
function InKernel:_refuses_call(event)
  if self.are_calls_dear and system_calls.parts(event.name) then
    return 'most system calls are others, which would pay for it'
  end
end

-- Options that are about the events that a gate passes on.
local GATED = { ['--exit-n'] = true, ['--export'] = true }

--- Returns why no events of a run can be taken; nil if they can.
---@param run Run
---@param gate? Instance
---@return string?
local function refuses_run(run, gate)
  local option = run:needs 'each_event'
  if option and not (gate and GATED[option]) then return option end
  if gate then return end
  if run.opt.verbose > 1 then return '-vv prints them' end
  if run.interval > 0 and run.interval < SHORTEST_INTERVAL then return 'the interval is less than 100 ms' end
end

--- Returns why a program cannot have an event of threads. Some kernels pass an event that is about another task than
--- the current one, such as a wakeup, to the perf events of both.
---@param run Run
---@param event Event
---@return string?
local function refuses_threads(run, event)
  if not attach.per_thread(run.opt, run.workload, run.everywhere) then return end
  if event.name:match '^sched:sched_wak' or event.name:match '^sched:sched_stat_' then
    return ('kernels differ in the threads of which %s is an event'):format(event.name)
  end
end

--- Returns why an event cannot be taken; nil if it can.
---@param event Event
---@param taker Taker
---@return string?
local function refuses_event(event, taker)
  local known = taker.attributes or {}
  if event.owner.parent and not taker.gate then return ('%s is an event of a source'):format(event.name) end
  if not event.tracepoint or event.machine or event.is_derived then
    return ('%s is not a tracepoint of this machine'):format(event.name)
  end
  if event.request.callchain ~= 0 then return 'stacks are recorded' end
  if event.strings then return ('the strings of %s are recorded'):format(event.name) end
  for name in pairs(event.attrs) do
    if name ~= 'alias' and not known[name] then return ('%s has the attribute %s='):format(event.name, name) end
  end
end

--- Returns whether someone else sees an event, too.
---@param taker Taker
---@param event Event
---@param checked contract.Handlers
---@return boolean
local function is_shared(taker, event, checked)
  for _, consumer in ipairs(checked.consumers) do
    if consumer.taker ~= taker and (consumer.feed or consumer.prepare) then return true end
  end
  for _, entry in ipairs(checked.events) do
    for _, found in ipairs(entry.found) do
      if found == event and not (taker.handlers and taker.handlers[event] == entry.handler) then return true end
    end
  end
  return false
end

--- Returns the event's filters, compiled.
---@param event Event
---@param only_kernel? boolean without the part that the dispatch loop evaluates
---@return Compiled[]
function InKernel:filters(event, only_kernel) -- luacheck: no self
  local list = {}
  for _, text in ipairs { event.kernel_filter or '', not only_kernel and event.user_filter or '' } do
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
---@return Targets|false
local function make_targets(self)
  local opt, workload = self.run.opt, self.run.workload
  if opt.cgroups and #opt.cgroups > 0 then return targets.groups(cgroups.find(opt.cgroups)) end
  if not attach.per_thread(opt, workload, self.run.everywhere) then return false end
  if self:has_foreign_pids() then asm.refuse("the kernel's thread ids are not those of this pid namespace") end
  local threads = targets.threads(attach.inherits(opt, workload), attach.is_target(opt, workload))
  if not opt.dry_run then threads:attach() end
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

--- Returns the threads that the run names, for a taker of a profiler that reads the events of all tasks. Refuses what
--- programs cannot tell.
---@return Targets
function InKernel:threads()
  if self._threads then return self._threads end
  local run = self.run
  if not run.everywhere or run.marks then asm.refuse 'another program knows the threads' end
  if self:has_foreign_pids() then asm.refuse("the kernel's thread ids are not those of this pid namespace") end
  self._threads = targets.threads(attach.inherits(run.opt, run.workload), false)
  if not run.opt.dry_run then self._threads:attach() end
  return self._threads
end

--- Notes events of which only those about the threads that the run names are wanted.
---@param list Event[]
function InKernel:want_only_threads(list) self._only_threads = list end

--- Loads the programs that drop the events about other threads. Without them, the profiler drops them.
function InKernel:_drop_others()
  local run = self.run
  for _, event in ipairs(self._only_threads or {}) do
    if not event.taken and thread_events.names_threads(event) then
      local ok, reason = asm.attempt(function()
        local lib, missing = libbpf.open()
        local loaded, rings = thread_events.load { event = event.name, list = event.list, fields = event.fields,
          type = tonumber(event.request.attr.config), filters = self:filters(event), threads = self:threads(),
          nr_cpus = lib and lib.libbpf_num_possible_cpus() or asm.refuse('%s', missing) }
        event.request.bpf_array, event.is_filtered = rings.fd, true
        table.insert(self._droppers, { rings, not run.opt.dry_run and probe.attach(loaded, self.calls) or loaded })
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
  if not aims or run.opt.dry_run then return end
  local rings = self.captures.rings
  if #self.takers + #self._droppers == 0 and (self._threads or not (rings and rings.events > 0)) then
    return aims:close()
  end
  if aims.marks then run:mark_threads(aims.marks.bytes, aims, ffi.cast('uint64_t *', aims.limits.bytes)) end
  -- The workload starts with the session, but nobody is a target before.
  if #self.takers > 0 and (self._threads or attach.is_target(run.opt, run.workload)) then self.switch:on() end
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
    switch = gate,
    filters = filters,
    own_pid = event.system ~= 'sched' and self.run:own_pid() or nil,
    targets = not everywhere and self:targets() or nil,
    is_exit = event.is_exit,
    options = { foreign_pids = self:has_foreign_pids() },
    calls = self.calls,
  }
end

--- Loads a program for an event: the body runs for each event that perf would have sampled. Called by takers.
---@param event Event
---@param body fun(a: Asm, source: Source, places: ProbePlaces)
---@return Descriptor program
function InKernel:probe(event, body)
  local loaded = probe.load(self:spec(event, self.switch, self:filters(event)), body)
  table.insert(self._loading, loaded)
  return loaded
end

--- Returns why a taker's events cannot be taken; nil if they can.
---@param run Run
---@param taker Taker
---@param checked contract.Handlers
---@return string?
local function refuses_events(run, taker, checked)
  for _, event in ipairs(taker.events) do
    local reason = refuses_event(event, taker) or refuses_threads(run, event) or run.in_kernel:_refuses_call(event)
      or not taker.gate and is_shared(taker, event, checked) and ('%s has several handlers'):format(event.name)
    if reason then return reason end
  end
end

--- Loads and attaches the programs of a taker. They do nothing yet. Returns why it cannot.
---@param taker Taker
---@param checked contract.Handlers
---@return string? reason
function InKernel:_try(taker, checked)
  local run, gate = self.run, taker.gate
  local reason = refuses_programs(run) or refuses_run(run, gate)
  if gate then
    reason = reason or gates.refuses(taker) or gate:on_its_own(refuses_events, run, taker, checked)
  else
    reason = reason or refuses_events(run, taker, checked)
  end
  if reason then return reason end
  self._loading = {}
  local ok
  ok, reason = asm.attempt(function()
    self.switch = self.switch
      or switch.new(self.run.opt.cpus and cpu_list.numbers(self.run.opt.cpus), self.run.interval > 0 and 2 or 1)
    taker:load(self, checked)
    local links = {}
    for i, loaded in ipairs(self.run.opt.dry_run and {} or self._loading) do
      links[i] = probe.attach(loaded, self.calls)
    end
    return links
  end)
  if not ok then return reason end
  for _, link in ipairs(ok) do table.insert(self._links, link) end
  for _, event in ipairs(taker.events) do event.taken = taker.does end
  if taker.settle then taker:settle(self) end
  if gate then gates.accept(taker) end
end

--- Does the same, and notes why not for `profscript explain`.
function InKernel:_load(taker, checked)
  taker.refusal = self:_try(taker, checked)
  for _, event in ipairs(taker.refusal and taker.events or {}) do event.not_taken = taker.refusal end
  return taker.refusal
end

--- Captures what no taker has. Returns why some events cannot be captured; nil if all are. Beside others, events with
--- cpus= may stay with perf.
---@param checked contract.Handlers
---@return string? reason
---@return boolean is_news the reason is not simply that these are other events
function InKernel:_capture(checked)
  local reason, is_news, because_of_cpus, some, list = nil, false, nil, false, self.run.events:shown()
  -- The kernel passes a tracepoint to the perf event that was opened last first, but to programs as they were attached.
  for i = #list, 1, -1 do
    local event = list[i]
    if not event.taken then
      event.not_captured = refuses_programs(self.run) or refuses_threads(self.run, event)
        or self:_refuses_call(event) or self.captures:add(event, checked)
    end
  end
  for _, event in ipairs(list) do
    local why = not event.taken and event.not_captured or nil
    if event.attrs.cpus then
      because_of_cpus = because_of_cpus or why
    else
      if why and captures.is_known(event) and not is_news then reason, is_news = why, true end
      reason = reason or why
    end
    some = some or event.taken ~= nil or event.captured ~= nil
  end
  return reason or not some and because_of_cpus or nil, is_news or not some and because_of_cpus ~= nil
end

--- Decides who takes which events. Called when all events and their filters are known, before they are opened.
---@param checked contract.Handlers
function InKernel:decide(checked)
  local run, accepted, reason = self.run, {}, nil
  self:_weigh()
  for _, taker in ipairs(self.takers) do
    local why = self:_load(taker, checked)
    if not why then accepted[#accepted + 1] = taker end
    reason = reason or why
  end
  self.takers = accepted
  self:_drop_others()
  local why, is_news = self:_capture(checked)
  self:_aim()
  if why and not is_news and not reason and run.opt.capture == 'auto' then return end
  if run.opt.capture == 'bpf' and why then
    local also = reason and reason ~= why and '; nor can programs count or pair them: ' .. reason or ''
    failure.usage('%s: --capture=bpf is not possible: %s%s', run.name, why, also)
  elseif run.opt.verbose >= 1 and run.opt.capture ~= 'perf' and not run.is_recorded and (why or reason) then
    run.out:warn(('%s: events are %s: %s'):format(run.name, why and 'read through perf' or 'captured one by one',
      why or reason))
  end
end

--- Lets the programs run. Called when the session has started.
function InKernel:start()
  if #self.takers == 0 then return end
  for _, taker in ipairs(self.takers) do
    if taker.start then taker:start(self) end
  end
  self.switch:on()
end

local function read(self, side, is_last)
  for _, taker in ipairs(self.takers) do
    if taker.turn and not taker.gate then taker:turn(side, is_last) end
  end
end

--- Returns whether programs count something.
local function counts_any(self)
  for _, taker in ipairs(self.takers) do
    if not taker.gate then return true end
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
  if sys.now(clock.base) - time < self.run.interval then read(self, self.switch:turn(), false) end
end

--- Ends the programs. Called when the session ends.
function InKernel:stop()
  if #self.takers == 0 then return end
  self._last = self.switch:off()
  for _, link in ipairs(self._links) do link:close() end
end

--- Reads what was counted since the last interval, after stop().
function InKernel:finish()
  if self._last then read(self, self._last, true) end
end

--- Returns the number of events that programs took.
---@return number
function InKernel:count()
  local n = 0
  for _, taker in ipairs(self.takers) do n = n + (taker.count and taker:count() or 0) end
  return n
end

return in_kernel
