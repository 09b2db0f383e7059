-- SPDX-License-Identifier: GPL-2.0-only
--- Driver: runs one profiler. Sets up the run, pulls batches from the session, sends them through the passes, and
--- ends the intervals and the run. All code that depends on the events is generated before the first one arrives.
local attach = require 'bindings.select.attach'
local axis = require 'bindings.print.axis'
local bit = require 'bit'
local code_places = require 'bindings.run.code_places'
local dry_run = require 'bindings.run.dry_run'
local explain = require 'bindings.run.explain'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local gates = require 'bindings.run.gates'
local generated = require 'bindings.run.generated'
local handler_plans = require 'bpf.ways.handler'
local memory = require 'bindings.run.memory'
local mounts = require 'bindings.base.mounts'
local output = require 'bindings.print.output'
local plan_json = require 'bindings.run.plan_json'
local printed = require 'bindings.run.printed'
local reload = require 'bindings.run.reload'
local report_pages = require 'bindings.print.report_page'
local runs = require 'bindings.run.run'
local sessions = require 'bindings.run.session'
local stack_report = require 'bindings.run.stack_report'
local status_report = require 'bindings.run.status_report'
local target_filter = require 'bindings.run.target_filter'
local text = require 'bindings.base.text'
local user_strings = require 'bindings.run.user_strings'
local values = require 'bindings.options.values'
local versions = require 'bindings.run.version'
local views = require 'bindings.view.views'

local C = ffi.C
local driver = {}

local DEFAULT_PAGES = 128 -- 512 KiB per ring: no losses at a million events per second
local DUMP_PAGES = 1024 -- if each event contains a copy of its user stack
local DEFAULT_WATERMARK = 50 -- percent

local function check(ok, err)
  if ok < 0 then failure.of(err) end
end

--- Writes the buffered output. Returns nil if its reader is gone.
local function flush(out)
  local ok, message = out:flush()
  if not ok and message ~= 'EPIPE' then failure.raise('%s', message) end
  return ok
end

--- The event loop of a run.
---@class Loop
---@field run Run
---@field version Version the script's
---@field waits? boolean for the clock of a guest
---@field reload? Reload
---@field page? ReportPage
local Loop = {}
Loop.__index = Loop

--- Calls a handler without an event. A profiler whose events are all sent elsewhere has nothing to report.
function Loop:call(...)
  if not self.run.sends_all then self.version:call(...) end
end

function Loop:report(time)
  if self.page then self.page:begin() end
  self:call('interval', time)
  if self.run:tell('interval', time) then self.run:stop() end
  if self.page then self.page:finish() end
end

--- Reads what was counted until now.
function Loop:read_counts()
  if self.run.counts then self.run.counts:read() end
end

--- On SIGUSR1, reopens the output file, for log rotation, and calls the script's handler.
function Loop:poll_signal()
  if not C.signals_take_reopen() then return end
  local run = self.run
  if run.opt.output then
    local ok, message = run.out:reopen()
    -- A warning would go to the file that has been moved away.
    if not ok then io.stderr:write('profscript: ', message, '\n') end
  end
  self:call 'status'
end

--- Prints the reports at the end of an interval.
function Loop:tick(time)
  local run = self.run
  run.loss:report()
  self:read_counts()
  run.in_kernel:turn(time)
  run:report_at(time, self.report, self, time)
  run:tell('reported', time)
end

function Loop:poll()
  self:poll_signal()
  if self.run:tell 'poll' then self.run:stop() end
  if self.page and self.page:poll() then self.run:stop() end
  if self.version:poll() then self.run:stop() end
  if self.reload then self.reload:poll(self) end
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
  local run = self.run
  local batch, err, urgent = ffi.new 'struct batch', ffi.new 'struct error', ffi.new 'uint32_t[1]'
  local flags
  local shows = run.is_recorded and run.progress.is_on
  self:has_clock()
  repeat
    check(C.session_next(run.session, batch, err), err)
    flags = batch.flags
    if self:has_clock() and batch.n > 0 then self.version.pass(batch.events, batch.n, flags) end
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
    run = self.run
    if not flush(run.out) then return end
    self.interrupted = bit.band(flags, C.BATCH_INTERRUPTED) ~= 0
  until run.ended or bit.band(flags, C.BATCH_END) ~= 0
end

--- Returns the time of the last event, or when the events were stopped.
function Loop:end_time()
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(self.run.session, stats)
  return stats.end_time
end

--- Calls the script's `stop`, which prints the last report. The report's time is the end of the run, or with -N the
--- time of the last event.
function Loop:finish()
  local run = self.run
  run.in_kernel:finish()
  self:read_counts()
  local time = run:last_report(self:end_time())
  self:call('stop', time)
  run:tell('stop', time)
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

--- Opens the events and starts the session.
---@param run Run
---@param version Version
---@param begin_target? fun(tids: integer[]) passes the target threads to the target filter
local function start_session(run, version, begin_target)
  local err, n, tids = ffi.new 'struct error', ffi.new 'uint32_t[1]', {}
  local target, anchors = attach.target(run.opt, run.workload, run.everywhere, run.marks, run.begun)
  C.session_set_interval(run.session, run.interval)
  local duration = run.opt.duration
  -- It began when the run began to wait for other machines.
  if duration then C.session_set_duration(run.session, math.max(duration - (run.opt.waited or 0), 1)) end
  if run.opt.remote_slack then C.session_set_slack(run.session, run.opt.remote_slack) end
  run.events:open(run:own_threads())
  check(C.session_start(run.session, target, err), err)
  run:opened(anchors)
  run.in_kernel:start()
  local threads = C.session_threads(run.session, n)
  for i = 1, n[0] do tids[i] = threads[i - 1] end
  version:begin(tids)
  if begin_target then begin_target(tids) end
end

--- Returns by class what this process does with each event, so that it must see them.
---@param target_branches? Branch[]
---@param limits Branch[]
---@param list Event[]
---@return table<integer, string>
local function taken_by(target_branches, limits, list)
  local taken = {}
  for _, branch in ipairs(target_branches or {}) do taken[branch.class] = 'so its threads cannot be selected' end
  for _, branch in ipairs(limits) do taken[branch.class] = "so a source's -N cannot count it" end
  for _, event in ipairs(list) do
    if event.gate then taken[event.class] = ('so %s cannot decide which events to pass on'):format(event.gate) end
  end
  return taken
end

--- Returns what the run that takes the place of this one begins with, if a consumer wants one, such as a prompt.
---@param loop Loop
---@return table?
local function opened_again(loop)
  local run = loop.run
  for _, consumer in ipairs(loop.version.checked.consumers) do
    local wanted = consumer.again and consumer:again()
    if wanted then
      local before = reload.again(run, loop.version.script, run, wanted.changes)
      for _, one in ipairs(wanted.events) do table.insert(before.opt.event, one) end
      return before
    end
  end
end

--- Runs a script on a session. Returns the exit code, or what reload.lua has said about a run that takes its place.
---@param before? table what Reload:open_again() has said
---@return integer|table
local function run_with_events(session, script, opt, words, found, before)
  local run = runs.new(session, script, opt, words, found, before and before.run)
  opt.mmap_pages = opt.mmap_pages or (type(opt.call_graph) == 'number' and DUMP_PAGES or DEFAULT_PAGES)
  opt.watermark = opt.watermark or DEFAULT_WATERMARK
  local out = run.out
  for _, name in ipairs(opt.ignored or {}) do
    out:warn(('%s: --%s has no effect, because the events are only counted'):format(run.name, name))
  end
  for _, note in ipairs(opt.notes or {}) do out:warn(('%s: %s'):format(run.name, note)) end
  if opt.cpus then opt.cpus = attach.online(run.name, opt.cpus, run.services.warn) end

  local version = versions.start(run, script)
  local checked = version.checked
  local fieldless = run.is_recorded and run.events:fieldless()
  if fieldless then out:warn(fieldless) end
  user_strings.capture(run)
  local target_branches, begin_target = target_filter.branches(run)
  version:split_filters()
  for _, consumer in ipairs(checked.consumers) do
    if consumer.offer then consumer:offer(run) end
  end
  local plans = handler_plans.offer(run, checked)
  gates.offer(run)
  run.in_kernel:decide(checked)
  local limits = version:limits()
  version:add_passes(target_branches, limits)
  run:print_only(function() return printed.events(run, checked) end)
  run:tell('prepare', taken_by(target_branches, limits, run.events.list))
  if opt.dry_run then
    out:append(out.format == 'json' and plan_json.text(run)
      or opt.explains and explain.text(run, plans, checked) or dry_run.text(run))
    if opt.dry_run == 'code' then out:append(generated.text(run)) end
    flush(out)
    return 0
  end
  if opt.verbose >= 1 then out:warn((dry_run.text(run):gsub('\n$', ''))) end
  run:tell 'open'
  local files = opt.watch and reload.watch(run, before)
  start_session(run, version, begin_target)
  out:on_wait(function() C.session_check_end(session) end)
  version:open()
  local page = opt.interval and not run.is_recorded and report_pages.new(out) or nil
  local loop = setmetatable({ run = run, version = version, page = page }, Loop)
  loop.reload = files and reload.new(run, version, found, files)
  if before and before.changes then reload.print_gap(run, before) end

  code_places.follow()
  run:tell 'start'
  jit.on()
  C.watchdog_begin(not opt.input and opt.duration or 0)
  local ok, problem = xpcall(loop.go, failure.traceback, loop)
  while not ok and loop.reload and loop.reload:go_back(loop, problem) do
    ok, problem = xpcall(loop.go, failure.traceback, loop)
  end
  C.watchdog_end()
  if page then page:stop() end
  if not ok then problem = memory.explain(problem, script.path) end
  run = loop.run
  run.in_kernel:stop()
  C.session_stop(session)
  run.in_kernel.captures:stop()
  run.in_kernel:forget_targets()
  local ended, end_problem = run:tell_all 'ended'
  run.progress:stage 'reports'
  C.watchdog_begin(0) -- for a Ctrl-C from now on: stop() may take long after the one that ended the run
  local again = ok and (loop.reload and loop.reload.again or opened_again(loop))
  if again then
    loop.version:close()
    run.loss:report()
    run:tell('leave', loop:end_time())
    flush(out)
    return again
  end
  local finished, finish_problem = xpcall(loop.finish, failure.traceback, loop)
  if ok and finished and out.format == 'text' and out:is_empty() then out:warn(run.name .. ': nothing to report') end
  C.watchdog_end()
  local closed, close_problem = run:tell_all('close', ok and ended and finished)
  run.progress:finish()
  out:flush()
  if not ok then error(problem, 0) end
  if not ended then error(end_problem, 0) end
  if not finished then error(finish_problem, 0) end
  if not closed then error(close_problem, 0) end
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
  if opt.watch then reload.check(script, opt) end
  local before
  repeat
    local ok, result = xpcall(sessions.with, failure.traceback, opt, run_with_events, script, opt, words, found, before)
    if not ok then error(memory.explain(result, script.path), 0) end
    if type(result) == 'number' then return result end
    before, script, opt = result, result.script, result.opt
  until false
end

return driver
