-- SPDX-License-Identifier: GPL-2.0-only
--- Driver: runs one profiler, from its set-up to its end. All code that depends on the events is generated before the
--- first one arrives.
local attach = require 'bindings.select.attach'
local code_places = require 'bindings.report.code_places'
local dry_run = require 'bpf.run.dry_run'
local ending = require 'bindings.run.ending'
local failure = require 'bindings.base.failure'
local i386_calls = require 'bpf.run.i386_calls'
local interrupts = require 'bindings.report.interrupts'
local ffi = require 'ffi'
local greeting = require 'bindings.run.greeting'
local loops = require 'bindings.run.loop'
local memory = require 'bindings.report.memory'
local output = require 'bindings.print.output'
local reload = require 'bindings.run.reload'
local runs = require 'bindings.run.run'
local sessions = require 'bindings.run.session'
local setup = require 'bindings.run.setup'
local values = require 'bindings.options.values'

local C = ffi.C
local driver = {}

--- Runs a script with `events = false`, whose start() does all the work.
local function run_without_events(script, opt)
  local out, message = output.new { file = opt.output, format = opt.format }
  if not out then failure.raise('%s', message) end
  local ok, problem, refusal = xpcall(script.profiler.start, failure.traceback, values.new(opt, script.spec), out)
  runs.flush(out)
  if not ok then error(problem, 0) end
  if problem == nil and refusal then failure.usage('%s: %s', script.name, tostring(refusal)) end
  return 0
end

--- Runs the loop and ends the run.
---@param loop Loop
---@return integer|table result see run_with_events()
local function run_loop(loop)
  local problems = ending.problems()
  ending.go(loop, problems)
  local run = loop.run -- of the last version of the script
  ending.stop_events(run, problems)
  run.progress:stage 'reports'
  C.watchdog_begin(0) -- for a Ctrl-C from now on: stop() may take long after the one that ended the run
  local again = not problems.is_any and loop:next_run()
  if again then
    ending.leave(loop)
    return again
  end
  ending.report(loop, problems)
  problems:raise()
  ending.summarize(loop)
  runs.flush(run.out)
  return loop:exit_code()
end

--- Runs a script on a session. Returns the exit code, or what the run that takes its place begins with.
---@param before? table what this run begins with, see Loop:next_run()
---@return integer|table
local function run_with_events(session, script, opt, words, found, before)
  local run = setup.run(session, script, opt, words, found, before)
  local version = setup.request(run, script)
  local targets, begin_target = setup.filter(run, version)
  local plans = setup.route(run, version)
  setup.passes(run, version, targets)
  if opt.dry_run then
    setup.print(run, version, plans)
    return 0
  end
  if opt.verbose >= 1 then run.out:warn((dry_run.text(run):gsub('\n$', ''))) end
  greeting.show(run, version.life.stop ~= nil)
  run:call 'open'
  local files = opt.watch and reload.watch(run, before)
  interrupts.warn(run)
  local counted_i386 = i386_calls.begin(run) -- a program that comes after perf's events misses the first calls
  setup.open(run, version, begin_target)
  local loop = loops.new(run, version, files and reload.new(run, version, found, files))
  if before and before.changes then reload.print_gap(run, before) end
  code_places.follow()
  loop.i386_calls = counted_i386
  run:call 'start'
  jit.on()
  return run_loop(loop)
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
  if not opt.input then require('bindings.base.sys').check_mounts() end
  attach.check(script.name, opt, words, script.profiler.options)
  if opt.watch then reload.check(script, opt) end
  local before
  repeat
    local ok, result = xpcall(sessions.with, failure.traceback, opt, run_with_events, script, opt, words, found, before)
    if not ok then error(memory.explain(result, script.given or script.name), 0) end
    if type(result) == 'number' then return result end
    before, script, opt = result, result.script, result.opt
  until false
end

return driver
