-- SPDX-License-Identifier: GPL-2.0-only
--- The end of a run, as stages. bindings/run/driver.lua has their order.
local axis = require 'bindings.print.axis'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local i386_calls = require 'bpf.run.i386_calls'
local memory = require 'bindings.report.memory'
local partial = require 'bindings.report.partial'
local runs = require 'bindings.run.run'
local stack_report = require 'bindings.report.stack_report'
local text = require 'bindings.base.text'

local C = ffi.C
local ending = {}

--- What has gone wrong in the stages. All of them take place; then the first problem is raised.
---@class Problems
---@field is_any? boolean
---@field first? any
local Problems = {}
Problems.__index = Problems

---@return Problems
function ending.problems() return setmetatable({}, Problems) end

--- Notes the result of a stage.
---@param ok boolean
---@param problem? any
---@return boolean ok
function Problems:note(ok, problem)
  if not ok and not self.is_any then self.is_any, self.first = true, problem end
  return ok
end

--- Raises the first problem.
function Problems:raise()
  if self.is_any then error(self.first, 0) end
end

--- Runs the loop until the stream or the run ends. With --watch, a version that fails may give way to the one before.
---@param loop Loop
---@param problems Problems
function ending.go(loop, problems)
  local run = loop.run
  C.watchdog_begin(not run.opt.input and run.opt.duration or 0)
  local ok, problem = xpcall(loop.go, failure.traceback, loop)
  while not ok and loop.reload and loop.reload:go_back(loop, problem) do
    ok, problem = xpcall(loop.go, failure.traceback, loop)
  end
  C.watchdog_end()
  if loop.page then loop.page:stop() end
  problems:note(ok, not ok and memory.explain(problem, loop.version.script.given or loop.version.script.name) or nil)
end

--- Stops what delivers events. Afterwards the session has no more of them.
---@param run Run
---@param problems Problems
function ending.stop_events(run, problems)
  run.in_kernel:stop()
  C.session_stop(run.session)
  run.in_kernel.captures:stop()
  run.in_kernel:forget_targets()
  problems:note(run:call_all 'ended')
end

--- Leaves the run to another one, which goes on with its output and followers. Nothing is reported.
---@param loop Loop
function ending.leave(loop)
  local run = loop.run
  loop.version:close()
  run.loss:report()
  run:call('leave', loop:end_time())
  runs.flush(run.out)
end

--- Prints the last report, and closes what goes along with the run. Needs a session that has been stopped.
---@param loop Loop
---@param problems Problems
function ending.report(loop, problems)
  local run, out, has_failed = loop.run, loop.run.out, problems.is_any
  partial.mark(run, loop.interrupted)
  local finished = problems:note(xpcall(loop.finish, failure.traceback, loop))
  if finished and not has_failed then loop:account_end() end
  C.watchdog_end()
  problems:note(run:call_all('close', not problems.is_any))
  run.progress:finish()
  out:flush()
end

--- Prints how exact the times of other machines are.
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
---@param loop Loop
function ending.summarize(loop)
  local run = loop.run
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(run.session, stats)
  run.loss:report()
  run.loss:advise(run.is_recorded)
  if tonumber(stats.bad) > 0 then
    run.out:warn(('%s: skipped %d damaged records'):format(run.name, tonumber(stats.bad)))
  end
  i386_calls.warn_of_programs(run, tonumber(stats.narrow))
  i386_calls.finish(run, loop.i386_calls)
  loop.account:report(run, loop.version.checked.consumers)
  if run.opt.verbose >= 1 then run.out:warn(run:totals()) end
  stack_report.print(run)
  local exactness = axis.error_text(run.axis)
  if exactness and run.opt.verbose >= 1 then run.out:warn(('%s: %s'):format(run.name, exactness)) end
  if run.opt.verbose >= 1 then print_machines(run) end
  local warning = C.session_warning(run.session)
  if warning ~= nil then failure.raise('%s', ffi.string(warning)) end
end

return ending
