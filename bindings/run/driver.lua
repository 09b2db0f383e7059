-- SPDX-License-Identifier: GPL-2.0-only
--- Runs one profiler: opens its session, pulls batches, dispatches them, ends the intervals and the
--- run. Everything that depends on the events is made before the first of them arrives.
local bit = require 'bit'
local ffi = require 'ffi'
local attach = require 'bindings.select.attach'
local bpf = require 'bindings.bpf.program'
local dispatch = require 'bindings.view.dispatch'
local dry_run = require 'bindings.run.dry_run'
local events = require 'bindings.select.events'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local instance = require 'bindings.run.instance'
local output = require 'bindings.print.output'
local own_threads = require 'bindings.run.target_filter'
local perfeval = require 'bindings.run.perfeval'
local printer = require 'bindings.print.printer'
local services = require 'bindings.run.services'
local sessions = require 'bindings.run.session'
local sources = require 'bindings.run.sources'
local stack_report = require 'bindings.run.stack_report'
local status_report = require 'bindings.run.status_report'
local usage = require 'bindings.run.usage'
local views = require 'bindings.view.views'

ffi.cdef [[
int getpid(void);
void free(void *);
]]

local C = ffi.C
local driver = {}

local DEFAULT_PAGES = 128 -- 512 KiB per ring: loses nothing at a million events per second
local DUMP_PAGES = 1024 -- where each event brings KiB of its stack
local DEFAULT_WATERMARK = 50 -- percent

-- Of PERF_RECORD_FORK: the thread that has started the new one.
local FORK_FIELDS = { { name = '_parent', type = 'pid_t', offset = 12, size = 4, elem_size = 4, count = 1,
  flags = C.FIELD_SIGNED } }

---@class Run
---@field name string of the profiler
---@field opt table
---@field session ffi.cdata*
---@field events table see bindings/select/events.lua
---@field out table
local Run = {}
Run.__index = Run

local function check(ok, err)
  if ok < 0 then failure.of(err) end
end

--- Writes out what was printed. False: nobody reads it any more.
local function flush(out)
  local ok, message = out:flush()
  if not ok and message ~= 'EPIPE' then failure.raise('%s', message) end
  return ok
end

--- One line for the user about lost records, at most once a second, and at the end; or what else --lost says.
function Run:note_loss(e)
  local n = tonumber(e.period)
  if n == 0 then
    self.out:warn(('%s: CPU #%d came online, its events before %.3f s are missing'):format(self.name, e.cpu,
      tonumber(e.key) / 1e9))
  end
  self.lost = self.lost + n
  self.lost_untold = self.lost_untold + (self.opt.lost ~= 'ignore' and n or 0)
  if n > 0 and self.opt.lost == 'error' then
    failure.raise('%s: lost %d events, and --lost=error ends the run', self.name, n)
  end
  if self.opt.verbose >= 1 and n > 0 and self.opt.lost ~= 'ignore' then
    self.out:warn(('%s: lost %d events on %s'):format(self.name, n,
      e.cpu >= 0 and 'CPU #' .. e.cpu or e.tid >= 0 and 'thread #' .. e.tid or 'an unknown CPU'))
  elseif e.time - (self.lost_told or -math.huge) >= 1e9 then
    self.lost_told = e.time
    self:tell_loss()
  end
  if self.on_lost then
    self.on_lost {
      lost = n,
      from = e.time,
      to = tonumber(e.key),
      cpu = e.cpu >= 0 and e.cpu or nil,
      tid = e.tid >= 0 and e.tid or nil,
    }
  end
end

function Run:tell_loss()
  if self.lost_untold == 0 then return end
  if self.opt.verbose < 1 then
    self.out:warn(('%s: lost %d events (%d)'):format(self.name, self.lost_untold, self.lost))
  end
  self.lost_untold = 0
end

--- Sorts the handlers by class.
---@param checked contract.Handlers
---@return Route[] routes
function Run:route(checked)
  local routes, by_class = {}, {}
  for _, entry in ipairs(checked.events) do
    for _, event in ipairs(entry.found) do
      local route = by_class[event.class]
      if not route then
        route = { class = event.class, view = event.view, handlers = {} }
        by_class[event.class] = route
        routes[#routes + 1] = route
      end
      route.handlers[#route.handlers + 1] = entry.handler
    end
  end
  for name, class in pairs { comm = C.EVENT_COMM, fork = C.EVENT_FORK, exit = C.EVENT_EXIT } do
    local handler = checked.life[name]
    if handler then
      C.session_want(self.session, class)
      local view = views.new(name, name == 'fork' and FORK_FIELDS or {}, self.services)
      routes[#routes + 1] = { class = class, view = view, handlers = { handler } }
    end
  end
  for _, route in ipairs(self.counts and self.counts.routes or {}) do
    routes[#routes + 1] = route
  end
  self.life = checked.life
  self.consumers, self.pollers = {}, {}
  for _, consumer in ipairs(checked.consumers) do
    if consumer.feed then table.insert(self.consumers, consumer) end
    if consumer.poll then table.insert(self.pollers, consumer) end
    for _, class in ipairs(consumer.wants or {}) do C.session_want(self.session, class) end
  end
  self.on_lost = checked.life.lost
  return routes
end

--- Filters that the kernel does not evaluate.
---@return function?
function Run:compile_filters()
  local filters = {}
  for _, event in ipairs(self.events.list) do
    local common = not event.is_clock and event.owner:common_filter() -- a clock has none of the fields
    if common then event.filter = event.filter and ('(%s) && (%s)'):format(event.filter, common) or common end
    local split = events.split_filter(event, self.opt.input ~= nil or event.through ~= nil)
    event.kernel_filter, event.user_filter = split.kernel, split.user_text
    if split.user and event.counted and not self.opt.input then
      failure.usage("%s is only counted: the kernel has to evaluate its filter, and it cannot '%s'", event.name,
        split.user_text)
    end
    if split.user then
      filters[#filters + 1] = {
        class = event.class,
        view = event.view,
        keep = expr.load(split.user, self.services.expression_env),
      }
    end
  end
  return dispatch.compile_filters(filters)
end

--- The process that the kernel leaves out: ours, unless somebody else is attached to.
---@return integer?
function Run:own_pid(words)
  local opt = self.opt
  local ours = not opt.input and not opt.self and not attach.per_thread(opt, words, self.everywhere)
  return ours and C.getpid() or nil
end

--- Opens the file of the output anew where SIGUSR1 asks for it, so that logs can be rotated.
local function rotation(out)
  return { poll = function()
    if not C.signals_take_reopen() then return end
    local ok, message = out:reopen()
    if not ok then out:warn(message) end
  end }
end

--- Names the threads that the run is about to the script.
function Run:tell_targets()
  local n, tids = ffi.new 'uint32_t[1]', {}
  local list = C.session_threads(self.session, n)
  for i = 1, n[0] do tids[i] = list[i - 1] end
  self.life.targets(tids)
end

function Run:start(words)
  local opt = self.opt
  local err = ffi.new 'struct error'
  self.target, self.anchors = attach.target(opt, words, self.everywhere, self.marks)
  C.session_set_interval(self.session, self.every or opt.interval or 0)
  C.session_set_duration(self.session, opt.duration or 0)
  self.events:open(self:own_pid(words))
  check(C.session_start(self.session, self.target, err), err)
  if self.life.targets then self:tell_targets() end
  if self.begin_own_threads then self.begin_own_threads() end
  for _, consumer in ipairs(self.consumers) do
    if consumer.open then consumer:open(self) end
  end
end

--- Calls a handler of the script that belongs to no event.
function Run:call(name, ...)
  local handler = self.life[name]
  if handler then handler(...) end
end

--- Lets those that want to look around between batches. One of them may end the run.
function Run:poll()
  for _, poller in ipairs(self.pollers) do
    self.stopped = poller:poll() or self.stopped
  end
end

--- Pulls and dispatches until the stream ends, -N is reached or nobody reads the output any more.
function Run:loop(dispatch_events, filter_events, limit_sources, has_routes)
  local batch = ffi.new 'struct batch'
  local err = ffi.new 'struct error'
  local left = not self.counts and self.opt.exit_n or nil
  local consumers = self.consumers
  repeat
    check(C.session_next(self.session, batch, err), err)
    local n, list = batch.n, batch.events
    if n > 0 then
      if self.perfeval then self.perfeval.count(list, n) end
      if filter_events then filter_events(list, n) end
      if self.leave_others_out then self.leave_others_out(list, n) end
      if limit_sources then limit_sources(list, n) end
      if left then
        local samples
        n, samples = dispatch.limit(list, n, left)
        left = left - samples
        if left == 0 then self.report_time = list[n - 1].time end
      end
      for i = 1, #consumers do
        if consumers[i].prepare then consumers[i]:prepare(list, n) end
      end
      if has_routes or bit.band(batch.flags, C.BATCH_LOST) ~= 0 then dispatch_events(list, n) end
      for i = 1, #consumers do
        consumers[i]:feed(list, n)
      end
    end
    if bit.band(batch.flags, C.BATCH_TICK) ~= 0 then
      self:tell_loss()
      self.report_time = batch.tick_time
      if self.counts then self.counts:read() end
      self:call('interval', batch.tick_time)
      if self.perfeval then self.ended = self.perfeval:interval() or self.ended end
      self.report_time = nil
    end
    if bit.band(batch.flags, C.BATCH_NOTICE) ~= 0 then
      local notice = ffi.string(C.session_take_notice(self.session))
      if self.opt.verbose >= 1 then self.out:warn(('%s: %s'):format(self.name, notice)) end
    end
    self:poll()
    if not flush(self.out) then return end
    self.interrupted = bit.band(batch.flags, C.BATCH_INTERRUPTED) ~= 0
  until left == 0 or self.ended or self.stopped or bit.band(batch.flags, C.BATCH_END) ~= 0
end

--- Wall time of what is reported now, as seconds and ns: the end of the interval, else that of the
--- last event. For a recording that does not know the wall time it is the time on its own clock.
---@param at? number ns since the session's base
function Run:report_clock(at)
  local clock, stats = ffi.new 'struct session_clock', ffi.new 'struct session_stats'
  C.session_read_clock(self.session, clock)
  C.session_read_stats(self.session, stats)
  local time = at or self.report_time or stats.to
  if clock.wall_sec ~= clock.wall_sec then
    local sec = math.floor(clock.base / 1e9)
    return sec, clock.base - sec * 1e9 + time, false
  end
  return clock.wall_sec, clock.wall_nsec + time, true
end

--- What the script prints at the end, about all since the last interval, and the time of it: when the run
--- ended, with -N the last of these events.
function Run:end_report()
  local stats = ffi.new 'struct session_stats'
  if self.counts then self.counts:read() end
  C.session_read_stats(self.session, stats)
  self.report_time = self.report_time or stats.end_time
  self:call('stop', self.report_time)
end

--- What is said when all is over.
function Run:summary()
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(self.session, stats)
  self:tell_loss()
  if self.lost > 0 and self.opt.lost == 'warn' and not self.opt.input and not self.opt.quiet then
    self.out:warn(('%s: larger rings (-m %d)%s or a filter would lose less'):format(self.name,
      self.opt.mmap_pages * 4, self.opt.realtime and '' or ', -r 1'))
  end
  if tonumber(stats.bad) > 0 then
    self.out:warn(('%s: %d damaged records were left out'):format(self.name, tonumber(stats.bad)))
  end
  if self.opt.verbose >= 1 then
    self.out:warn(('profscript: %d events, %d lost, %d late'):format(tonumber(stats.events),
      tonumber(stats.lost), tonumber(stats.late)))
  end
  stack_report.print(self)
  local warning = C.session_warning(self.session)
  if warning ~= nil then failure.raise('%s', ffi.string(warning)) end
end

--- The exit code of the workload, as a shell gives it, unless it was us who ended the run.
---@return integer
function Run:exit_code()
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(self.session, stats)
  local status = self.interrupted and 0 or stats.workload_status
  local signal = bit.band(status, 0x7f)
  return signal ~= 0 and 128 + signal or bit.rshift(status, 8)
end

--- Runs a profiler that says `events = false`: all of its work is done in start().
local function run_without_events(script, opt)
  local out, message = output.new { file = opt.output, format = opt.format }
  if not out then failure.raise('%s', message) end
  local ok, problem, refusal = xpcall(script.profiler.start, failure.traceback, opt, out)
  flush(out)
  if not ok then error(problem, 0) end
  if problem == nil and refusal then failure.usage('%s: %s', script.name, tostring(refusal)) end
  return 0
end

local function run_with_events(session, script, opt, words, found)
  local err = ffi.new 'struct error'
  attach.check(script.name, opt, words, script.profiler.options)
  if opt.input then check(C.session_open_recording(session, opt.input, err), err) end
  opt.mmap_pages = opt.mmap_pages or (type(opt.call_graph) == 'number' and DUMP_PAGES or DEFAULT_PAGES)
  opt.watermark = opt.watermark or DEFAULT_WATERMARK
  local run = setmetatable({
    name = script.name,
    opt = opt,
    session = session,
    workload = words,
    everywhere = script.profiler.everywhere,
    lost = 0,
    lost_untold = 0,
  }, Run)
  run.per_thread = attach.per_thread(opt, words)
  local out, message = output.new {
    file = opt.output,
    format = opt.format,
    clock = function(at) return run:report_clock(at) end,
  }
  if not out then failure.raise('%s', message) end
  if opt.quiet then out.warn = function() end end
  run.out = out
  run.services = services.new(run)
  local inherits = not run.everywhere and attach.inherits(opt, words)
  run.events = events.new(session, run.services, script, opt, inherits)
  run.events.sources = sources.new(found)
  local lines = printer.new(run)
  out.print_event = function(_, ev, bare, prefix, part) lines:print(ev, bare, prefix, part) end

  local profiler = instance.new(run, script, opt)
  profiler:open_event_options()
  local handlers, refusal = profiler:start()
  if handlers == nil and refusal then failure.usage('%s: %s', script.name, tostring(refusal)) end
  local routes = run:route(profiler:check(handlers))
  if #run.events.list == 0 and not run.bpf then
    failure.usage("%s: no events: name some with -e, such as -e sched:sched_switch", script.name)
  end
  run.events.sources:apply_options(opt)
  profiler:mark_events()
  local filter_events = run:compile_filters()
  run.leave_others_out, run.begin_own_threads = own_threads.compile(run)
  local limit_sources = sources.compile_limits(session, run.events.list, function() run.ended = true end)
  local dispatch_events = dispatch.compile(routes, function(e) run:note_loss(e) end)
  run.perfeval = perfeval.new(run)
  if opt.dry_run then
    out:raw(dry_run.text(run, words))
    flush(out)
    return 0
  end
  if opt.verbose >= 1 then out:warn((dry_run.text(run, words):gsub('\n$', ''))) end
  run:start(words)
  if opt.output then table.insert(run.pollers, rotation(out)) end
  table.insert(run.pollers, status_report.new(run, words))
  if run.bpf then table.insert(run.pollers, bpf.follower(run)) end
  if opt.usage_self then table.insert(run.pollers, usage.new(run, opt.usage_self)) end

  jit.on()
  local ok, problem = xpcall(run.loop, failure.traceback, run, dispatch_events, filter_events, limit_sources,
    #routes > 0)
  C.session_stop(session)
  local stopped, stop_problem = xpcall(run.end_report, failure.traceback, run)
  out:flush()
  if not ok then error(problem, 0) end
  if not stopped then error(stop_problem, 0) end
  run:summary()
  flush(out)
  return run:exit_code()
end

--- Runs a loaded profiler.
---@param script scripts.Script
---@param opt table parsed options
---@param words string[] the workload
---@param found scripts.Scripts where sources of events are
---@return integer exit code
function driver.run(script, opt, words, found)
  if script.profiler.events == false then return run_without_events(script, opt) end
  return sessions.with(run_with_events, script, opt, words, found)
end

return driver
