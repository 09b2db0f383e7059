-- SPDX-License-Identifier: GPL-2.0-only
--- Driver: runs one profiler. Sets up the run, pulls batches from the session, sends them through the passes, and
--- ends the intervals and the run. All code that depends on the events is generated before the first one arrives.
local attach = require 'bindings.select.attach'
local axis = require 'bindings.print.axis'
local bit = require 'bit'
local bpf = require 'bindings.bpf.program'
local code_places = require 'bindings.run.code_places'
local dispatch = require 'bindings.view.dispatch'
local dry_run = require 'bindings.run.dry_run'
local event_filter = require 'bindings.select.event_filter'
local explain = require 'bindings.run.explain'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local handler_plans = require 'bindings.run.handler_plans'
local instance = require 'bindings.run.instance'
local memory = require 'bindings.run.memory'
local mounts = require 'bindings.base.mounts'
local output = require 'bindings.print.output'
local passes = require 'bindings.run.passes'
local perfeval = require 'bindings.run.perfeval'
local printer = require 'bindings.print.printer'
local push = require 'bindings.run.push'
local runs = require 'bindings.run.run'
local sessions = require 'bindings.run.session'
local serving = require 'bindings.serve.serve'
local sources = require 'bindings.run.sources'
local stack_report = require 'bindings.run.stack_report'
local status_report = require 'bindings.run.status_report'
local target_filter = require 'bindings.run.target_filter'
local text = require 'bindings.base.text'
local usage = require 'bindings.run.usage'
local user_strings = require 'bindings.run.user_strings'
local values = require 'bindings.options.values'
local views = require 'bindings.view.views'

local C = ffi.C
local driver = {}

local DEFAULT_PAGES = 128 -- 512 KiB per ring: no losses at a million events per second
local DUMP_PAGES = 1024 -- if each event contains a copy of its user stack
local DEFAULT_WATERMARK = 50 -- percent

-- The parent thread in PERF_RECORD_FORK.
local FORK_FIELDS = { { name = '_parent', type = 'pid_t', offset = 12, size = 4, elem_size = 4, count = 1,
  flags = C.FIELD_SIGNED } }

local function check(ok, err)
  if ok < 0 then failure.of(err) end
end

--- Writes the buffered output. Returns nil if its reader is gone.
local function flush(out)
  local ok, message = out:flush()
  if not ok and message ~= 'EPIPE' then failure.raise('%s', message) end
  return ok
end

--- Groups the handlers by class, and requests the records that handlers and consumers need from the session.
---@param run Run
---@param checked contract.Handlers
---@param prints_events boolean each event is printed before its handlers see it
---@return Route[] routes
local function route(run, checked, prints_events)
  local routes, by_class = {}, {}
  local function add(event, handler)
    local known = by_class[event.class]
    if not known then
      known = { class = event.class, view = event.view, handlers = {} }
      by_class[event.class] = known
      routes[#routes + 1] = known
    end
    known.handlers[#known.handlers + 1] = handler
  end
  if prints_events then
    local function print_event(ev) run.out:print_event(ev) end
    for _, event in ipairs(run.events.list) do add(event, print_event) end
  end
  for _, entry in ipairs(checked.events) do
    for _, event in ipairs(entry.found) do add(event, entry.handler) end
  end
  for _, counted in ipairs(run.counts and run.counts.routes or {}) do
    for _, handler in ipairs(counted.handlers) do add(counted, handler) end
  end
  for _, event in ipairs(run.events.list) do
    local exec = event.attrs.exec
    if exec and event.request.counted == 1 and not run.is_recorded then
      run.out:warn(('%s: exec= has no effect on %s, which is only counted'):format(run.name, event.name))
    elseif exec then
      add(event, run.services.expression(event, exec, run.opt.allow_exec).value)
    end
  end
  for name, class in pairs { comm = C.EVENT_COMM, fork = C.EVENT_FORK, exit = C.EVENT_EXIT } do
    local handler = checked.life[name]
    if handler then
      C.session_want(run.session, class)
      local view = views.new(name, name == 'fork' and FORK_FIELDS or {}, run.services)
      routes[#routes + 1] = { class = class, view = view, handlers = { handler } }
    end
  end
  for _, consumer in ipairs(checked.consumers) do
    for _, class in ipairs(consumer.wants or {}) do C.session_want(run.session, class) end
  end
  return routes
end

--- Splits the filters of all events into a kernel part and a user part.
---@param run Run
---@return Branch[] branches the user part
local function split_filters(run)
  local filters = {}
  for _, event in ipairs(run.events.list) do
    local common = not event.is_clock and event.owner:common_filter() -- clocks do not have its fields
    if common then event.filter = event.filter and ('(%s) && (%s)'):format(event.filter, common) or common end
    local in_user_space = run.is_recorded or event.machine or event.request.bpf_array ~= 0
    local arch = ffi.string(C.session_arch(run.session, event.request.member))
    local split = event_filter.split(event, in_user_space, arch)
    event.kernel_filter, event.user_filter = split.kernel, split.user_text
    if event.machine and event.request.counted == 1 then
      failure.usage('%s: %s only counts events, which pull= cannot do; use --input %s', event.name, run.name,
        event.machine.address)
    end
    if split.user and event.request.counted == 1 and not run.is_recorded then
      failure.usage("%s is only counted, so the kernel must evaluate its filter, but it cannot evaluate '%s'",
        event.name, split.user_text)
    end
    if split.user then
      filters[#filters + 1] = {
        class = event.class,
        view = event.view,
        keep = expr.load(split.user, run.services.expression_env),
      }
    end
  end
  return dispatch.filters(filters)
end

--- Returns a pass that ends the run after N events (-N); nil without -N.
---@param run Run
---@param by_script? boolean the script itself ends the run
---@return Pass? pass
local function limit(run, by_script)
  local left = not (run.counts or by_script) and run.opt.exit_n or nil
  return left and function(list, n)
    local samples
    n, samples = dispatch.limit(list, n, left)
    left = left - samples
    if left == 0 then run:stop(list[n - 1].time) end
    return n
  end
end

--- Returns the pass that calls the script's handlers. Without handlers it only processes losses, and only in batches
--- that contain any.
---@param run Run
---@param routes Route[]
---@return Pass
local function handlers_pass(run, routes)
  local loop = dispatch.loop('dispatch', dispatch.routes(routes, function(e) run.loss:note(e) end), run.stopped)
  if #routes > 0 then return loop end
  return function(list, n, flags)
    if bit.band(flags, C.BATCH_LOST) ~= 0 then loop(list, n) end
  end
end

--- Returns a poller that on SIGUSR1 reopens the output file, for log rotation, and calls the script's handler.
---@param run Run
---@param status? fun()
local function on_usr1(run, status)
  return { poll = function()
    if not C.signals_take_reopen() then return end
    if run.opt.output then
      local ok, message = run.out:reopen()
      -- A warning would go to the file that has been moved away.
      if not ok then io.stderr:write('profscript: ', message, '\n') end
    end
    if status then status() end
  end }
end

--- The event loop of a run.
---@class Loop
---@field run Run
---@field pass Pass all passes
---@field life table<string, function> the script's handlers without an event: interval, stop...
---@field pollers Consumer[]
---@field perfeval? Perfeval
---@field waits? boolean for the clock of a guest
---@field push? Push events that are sent elsewhere
local Loop = {}
Loop.__index = Loop

--- Calls a handler without an event if the script has one.
function Loop:call(name, ...)
  local handler = self.life[name]
  if handler then handler(...) end
end

function Loop:report(time)
  self:call('interval', time)
  if self.run.serving then self.run.serving:report() end
  if self.perfeval and self.perfeval:interval() then self.run:stop() end
end

--- Reads and exports what was counted until now.
function Loop:read_counts(time)
  local run = self.run
  if not run.counts then return end
  run.counts:read()
  if run.export then run.export:count(time) end
end

--- Prints the reports at the end of an interval.
function Loop:tick(time)
  local run = self.run
  run.loss:report()
  self:read_counts(time)
  run.in_kernel:turn(time)
  run:report_at(time, self.report, self, time)
  if run.query then run.query:answer(time) end
  if self.push and run.opt.verbose >= 1 then self.push:report() end
end

function Loop:poll()
  for _, poller in ipairs(self.pollers) do
    if poller:poll() then self.run:stop() end
  end
end

--- Returns whether the times of events can be printed. Until then, events are dropped.
function Loop:has_clock()
  local run, is_ready = self.run, self.run.axis.ready()
  if not is_ready and not self.waits then
    run.out:warn(('%s: waiting for KVM to update the clock of %s, which may take five minutes'):format(run.name,
      run.opt.kvmclock))
  elseif is_ready and self.waits then
    run.out:warn(('%s: the clock of %s is known'):format(run.name, run.opt.kvmclock))
  end
  self.waits = not is_ready
  return is_ready
end

--- Pulls batches until the stream or the run ends, or the reader of the output is gone.
function Loop:go()
  local run, pass = self.run, self.pass
  local batch, err, urgent = ffi.new 'struct batch', ffi.new 'struct error', ffi.new 'uint32_t[1]'
  local flags
  local shows = run.is_recorded and run.progress.is_on
  self:has_clock()
  repeat
    check(C.session_next(run.session, batch, err), err)
    flags = batch.flags
    if self:has_clock() and batch.n > 0 then pass(batch.events, batch.n, flags) end
    views.end_batch()
    run.loss:poll()
    if bit.band(flags, C.BATCH_TICK) ~= 0 then self:tick(batch.tick_time) end
    if bit.band(flags, C.BATCH_NOTICE) ~= 0 then
      local notice = ffi.string(C.session_take_notice(run.session, urgent))
      if urgent[0] ~= 0 or run.opt.verbose >= 1 then run.out:warn(('%s: %s'):format(run.name, notice)) end
    end
    if shows then run.progress:poll(run.session) end
    local change = axis.notice(run.axis)
    if change then run.out:warn(('%s: %s'):format(run.name, change)) end
    self:poll()
    if not flush(run.out) then return end
    self.interrupted = bit.band(flags, C.BATCH_INTERRUPTED) ~= 0
  until run.ended or bit.band(flags, C.BATCH_END) ~= 0
end

--- Calls the script's `stop`, which prints the last report. The report's time is the end of the run, or with -N the
--- time of the last event.
function Loop:finish()
  local run, stats = self.run, ffi.new 'struct session_stats'
  run.in_kernel:finish()
  C.session_read_stats(run.session, stats)
  self:read_counts(stats.end_time)
  local time = run:last_report(stats.end_time)
  self:call('stop', time)
  if run.query then run.query:finish(time) end
  if run.serving then run.serving:finish() end
end

--- Completes the export's file, also after a failure: it holds what came before. Returns false and the problem if that
--- fails, too.
---@param run Run
---@return boolean ok
---@return table? problem
local function finish_export(run)
  if not run.export then return true end
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(run.session, stats)
  run.progress:stage('writing ' .. run.export.path)
  local ok, problem = xpcall(run.export.finish, failure.traceback, run.export, stats.end_time)
  if not ok then run.export:discard() end
  return ok, problem
end

--- Prints how exact the times of other machines are.
---@param run Run
local function print_machines(run)
  local method = ffi.new 'const char *[1]'
  for member = 1, C.session_machines(run.session) - 1 do
    local ns = C.session_clock_error(run.session, member, method)
    run.out:warn(('%s: the times of %s are %s (by %s)'):format(run.name,
      text.safe(ffi.string(C.session_host(run.session, member))),
      ns == 0 and 'exact' or ns < math.huge and ('right to within %.0f ns'):format(math.ceil(ns))
        or 'right to an unknown degree', ffi.string(method[0])))
  end
end

--- Prints losses, damaged records and statistics after the run, and fails if the session has a warning.
---@param run Run
local function print_summary(run)
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(run.session, stats)
  run.loss:report()
  run.loss:advise(run.is_recorded)
  if tonumber(stats.bad) > 0 then
    run.out:warn(('%s: skipped %d damaged records'):format(run.name, tonumber(stats.bad)))
  end
  if run.opt.verbose >= 1 then run.out:warn(status_report.totals(run, stats)) end
  stack_report.print(run)
  local exactness = axis.error_text(run.axis)
  if exactness and run.opt.verbose >= 1 then run.out:warn(('%s: %s'):format(run.name, exactness)) end
  if run.opt.verbose >= 1 then print_machines(run) end
  local warning = C.session_warning(run.session)
  if warning ~= nil then failure.raise('%s', ffi.string(warning)) end
end

--- Returns the exit code of the workload as a shell does, or 0 if the run was interrupted.
---@return integer
function Loop:exit_code()
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(self.run.session, stats)
  local status = self.interrupted and 0 or stats.workload_status
  local signal = bit.band(status, 0x7f)
  return signal ~= 0 and 128 + signal or bit.rshift(status, 8)
end

--- Runs a script with `events = false`, whose start() does all the work.
local function run_without_events(script, opt)
  local out, message = output.new { file = opt.output, format = opt.format }
  if not out then failure.raise('%s', message) end
  local ok, problem, refusal = xpcall(script.profiler.start, failure.traceback, values.new(opt, script.spec), out)
  flush(out)
  if not ok then error(problem, 0) end
  if problem == nil and refusal then failure.usage('%s: %s', script.name, tostring(refusal)) end
  return 0
end

--- Starts the profiler and its sources, and checks their events and handlers.
---@param run Run
---@param script scripts.Script
---@return contract.Handlers
---@return SessionWants
local function start_profiler(run, script)
  local profiler = instance.new(run, script, run.opt)
  profiler:open_event_options()
  local handlers, refusal = profiler:start()
  if handlers == nil and refusal then failure.usage('%s: %s', script.name, tostring(refusal)) end
  local checked = profiler:check(handlers)
  if #run.events.list == 0 and #run.programs == 0 then
    failure.usage('%s: no events; select some with -e, such as -e sched:sched_switch', script.name)
  end
  if run.query then run.query:open(run.session) end
  run.events.sources:apply_options(run.opt)
  profiler:mark_events()
  run.loss:set_handler(checked.life.lost)
  return checked, profiler.wants
end

--- Opens the events and starts the session.
---@param run Run
---@param checked contract.Handlers
---@param begin_target? fun(tids: integer[]) passes the target threads to the target filter
local function start_session(run, checked, begin_target)
  local err, n, tids = ffi.new 'struct error', ffi.new 'uint32_t[1]', {}
  local target, anchors = attach.target(run.opt, run.workload, run.everywhere, run.marks)
  C.session_set_interval(run.session, run.interval)
  local duration = run.opt.duration
  -- It began when the run began to wait for other machines.
  if duration then C.session_set_duration(run.session, math.max(duration - (run.opt.waited or 0), 1)) end
  if run.opt.remote_slack then C.session_set_slack(run.session, run.opt.remote_slack) end
  run.events:open(run:own_threads())
  for _, recorder in ipairs(run.recorders) do recorder:open() end
  check(C.session_start(run.session, target, err), err)
  run:opened(anchors)
  run.in_kernel:start()
  local threads = C.session_threads(run.session, n)
  for i = 1, n[0] do tids[i] = threads[i - 1] end
  if checked.life.targets then checked.life.targets(tids) end
  if begin_target then begin_target(tids) end
  for _, recorder in ipairs(run.recorders) do recorder:started() end
end

--- Returns the consumers to poll between batches.
---@param run Run
---@param checked contract.Handlers
---@param sender? Push
---@return Consumer[]
local function pollers(run, checked, sender)
  local list = {}
  for _, consumer in ipairs(checked.consumers) do
    if consumer.poll then list[#list + 1] = consumer end
  end
  if run.opt.output or checked.life.status then list[#list + 1] = on_usr1(run, checked.life.status) end
  list[#list + 1] = status_report.new(run, sender)
  list[#list + 1] = sender
  for _, recorder in ipairs(run.recorders) do list[#list + 1] = recorder end
  if #run.programs > 0 then list[#list + 1] = bpf.follower(run) end
  if run.opt.usage_self then list[#list + 1] = usage.new(run, run.opt.usage_self) end
  return list
end

--- Returns by class what this process does with each event, so that it must see them.
---@param target_branches? Branch[]
---@param limits Branch[]
---@return table<integer, string>
local function taken_by(target_branches, limits)
  local taken = {}
  for _, branch in ipairs(target_branches or {}) do taken[branch.class] = 'so its threads cannot be selected' end
  for _, branch in ipairs(limits) do taken[branch.class] = "so a source's -N cannot count it" end
  return taken
end

local function close_recorders(run)
  for _, recorder in ipairs(run.recorders) do recorder:close() end
end

local function run_with_events(session, script, opt, words, found)
  local given_pages = opt.mmap_pages
  opt.mmap_pages = given_pages or (type(opt.call_graph) == 'number' and DUMP_PAGES or DEFAULT_PAGES)
  opt.watermark = opt.watermark or DEFAULT_WATERMARK
  serving.set_interval(opt)
  local run = runs.new(session, script, opt, words, found)
  local out = run.out
  out:print_events_with(printer.new(run))
  for _, name in ipairs(opt.ignored or {}) do
    out:warn(('%s: --%s has no effect, because the events are only counted'):format(run.name, name))
  end
  for _, note in ipairs(opt.notes or {}) do out:warn(('%s: %s'):format(run.name, note)) end
  if opt.cpus then opt.cpus = attach.online(run.name, opt.cpus, run.services.warn) end

  local checked, wants = start_profiler(run, script)
  local fieldless = run.is_recorded and run.events:fieldless()
  if fieldless then out:warn(fieldless) end
  user_strings.capture(run)
  local all, watches = passes.new(), perfeval.new(run)
  local target_branches, begin_target = target_filter.branches(run)
  all:add('filter', 'filters', split_filters(run))
  for _, consumer in ipairs(checked.consumers) do
    if consumer.offer then consumer:offer(run) end
  end
  local plans = handler_plans.offer(run, checked)
  run.in_kernel:decide(checked)
  local limits = sources.limits(session, run.events.list, function() run:stop() end)
  all:add('count', 'perfeval', watches and watches.branches)
  all:add('target', 'target_filter', target_branches)
  all:add('limit', 'limits', limits)
  all:add('limit', '-N', limit(run, wants.own_exit_n))
  all:add('handle', 'dispatch', handlers_pass(run, route(run, checked, opt.verbose > 1 and not wants.prints_events)))
  local sender = push.new(run, taken_by(target_branches, limits))
  if sender and not given_pages then opt.mmap_pages = math.max(opt.mmap_pages, push.ring_pages()) end
  if opt.dry_run then
    out:append(opt.explains and explain.text(run, plans, checked) or dry_run.text(run))
    flush(out)
    return 0
  end
  if opt.verbose >= 1 then out:warn((dry_run.text(run):gsub('\n$', ''))) end
  if run.serving then run.serving:open() end
  start_session(run, checked, begin_target)
  if run.serving then run.serving:publish() end
  out:on_wait(function() C.session_check_end(session) end)
  if run.export then
    run.export:open()
    all:add('export', 'export', run.export:pass())
  end
  for _, consumer in ipairs(checked.consumers) do
    if consumer.open then consumer:open(run) end
    all:add_consumer(consumer)
  end
  -- A profiler whose events are all sent elsewhere has nothing to report.
  local loop = setmetatable({ run = run, pass = all:compile(), life = sender and sender.only and {} or checked.life,
    perfeval = watches, pollers = pollers(run, checked, sender), push = sender }, Loop)

  code_places.follow()
  if run.export then run.export:begin() end
  jit.on()
  C.watchdog_begin(not opt.input and opt.duration or 0)
  local ok, problem = xpcall(loop.go, failure.traceback, loop)
  C.watchdog_end()
  if not ok then problem = memory.explain(problem, script.path) end
  run.in_kernel:stop()
  C.session_stop(session)
  run.in_kernel.captures:stop()
  local kept, kept_problem = xpcall(close_recorders, failure.traceback, run)
  run.progress:stage 'reports'
  C.watchdog_begin(0) -- for a Ctrl-C from now on: stop() may take long after the one that ended the run
  local finished, finish_problem = xpcall(loop.finish, failure.traceback, loop)
  if ok and finished and out.format == 'text' and out:is_empty() then out:warn(run.name .. ': nothing to report') end
  C.watchdog_end()
  local exported, export_problem = finish_export(run)
  run.progress:finish()
  out:flush()
  if not ok then error(problem, 0) end
  if not kept then error(kept_problem, 0) end
  if not finished then error(finish_problem, 0) end
  if not exported then error(export_problem, 0) end
  if sender then sender:finish() end
  print_summary(run)
  flush(out)
  return loop:exit_code()
end

--- Runs a loaded profiler.
---@param script scripts.Script
---@param opt table parsed options
---@param words string[] the workload
---@param found scripts.Scripts profilers that can be event sources
---@return integer exit code
function driver.run(script, opt, words, found)
  if script.profiler.events == false then
    if opt.explains then failure.usage('%s traces no events', script.name) end
    return run_without_events(script, opt)
  end
  if not opt.input then mounts.check() end
  attach.check(script.name, opt, words, script.profiler.options)
  local ok, result = xpcall(sessions.with, failure.traceback, opt, run_with_events, script, opt, words, found)
  if not ok then error(memory.explain(result, script.path), 0) end
  return result
end

return driver
