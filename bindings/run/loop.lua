-- SPDX-License-Identifier: GPL-2.0-only
--- The event loop of a run: pulls batches from the session, sends them through the passes, ends the intervals, and
--- calls the script's last report.
local accounts = require 'bindings.report.account'
local axis = require 'bindings.print.axis'
local bit = require 'bit'
local dispatch = require 'bindings.view.dispatch'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local reload = require 'bindings.run.reload'
local report_pages = require 'bindings.print.report_page'
local runs = require 'bindings.run.run'
local views = require 'bindings.view.views'

local C = ffi.C
local loops = {}

--- The event loop of a run.
---@class Loop
---@field run Run
---@field version Version the script's
---@field waits? boolean for the clock of a guest
---@field reload? Reload
---@field page? ReportPage
---@field account Account
---@field i386_calls? I386Calls
local Loop = {}
Loop.__index = Loop

--- Calls a handler without an event. A profiler whose events are all sent elsewhere has nothing to report.
function Loop:call(...)
  if not self.run.sends_all then self.version:call(...) end
end

--- Shows what a run without -i has collected, until its last report.
function Loop:draw(time)
  if not self.page or not self.page:can_show() then return end
  self.run.in_kernel:turn(time)
  self.page:begin()
  self:call('draw', time)
  self.page:finish()
end

function Loop:report(time)
  if self.page then self.page:begin() end
  self:call('interval', time)
  if self.run:call('interval', time) then self.run:stop() end
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
  if run.draws then return self:draw(time) end
  run.loss:report()
  self.account:interval(run, time)
  self:read_counts()
  run.in_kernel:turn(time)
  run:report_at(time, self.report, self, time)
  run:call('reported', time)
end

function Loop:poll()
  self:poll_signal()
  self.run.in_kernel:poll()
  if self.run:call 'poll' then self.run:stop() end
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
    if C.session_next(run.session, batch, err) < 0 then failure.of(err) end
    flags = batch.flags
    if self:has_clock() then
      if batch.n > 0 then self.version.pass(batch.events, batch.n, flags) end
    else
      dispatch.drop(batch.events, 0, batch.n)
    end
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
    if not runs.flush(run.out) then return end
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
  run:call('stop', time)
end

--- Ends the account. Prints why there is nothing to report.
function Loop:account_end()
  local run, out = self.run, self.run.out
  self.account:close(run)
  if out.format ~= 'text' then return end
  if out:is_empty() then
    local causes = self.account:causes(run, self.version.checked.consumers)
    out:warn(('%s: nothing to report%s'):format(run.name, causes and ': ' .. causes or ''))
  elseif not out:has_printed() then
    local silence = self.account:silence(run)
    if silence then out:warn(('%s: %s'):format(run.name, silence)) end
  end
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

--- Returns what the run that takes the place of this one begins with; nil if there is none.
---@return table?
function Loop:next_run()
  if self.reload and self.reload.again then return self.reload.again end
  local run = self.run
  for _, consumer in ipairs(self.version.checked.consumers) do -- such as a prompt
    local wanted = consumer.again and consumer:again()
    if wanted then
      local before = reload.again(run, self.version.script, run, wanted.changes)
      for _, one in ipairs(wanted.events) do table.insert(before.opt.event, one) end
      return before
    end
  end
end

---@param run Run
---@param version Version
---@param reloads? Reload with --watch
---@return Loop
function loops.new(run, version, reloads)
  local page = (run.opt.interval or run.draws) and not run.is_recorded and report_pages.new(run.out) or nil
  if page then page.draws = run.draws end
  return setmetatable({ run = run, version = version, page = page, reload = reloads, account = accounts.new() },
    Loop)
end

return loops
