-- SPDX-License-Identifier: GPL-2.0-only
--- The data of one run, and what its parts may change of it. bindings/run/driver.lua drives it.
local ffi = require 'ffi'
local attach = require 'bindings.select.attach'
local events = require 'bindings.select.events'
local failure = require 'bindings.base.failure'
local loss = require 'bindings.run.loss'
local output = require 'bindings.print.output'
local services = require 'bindings.run.services'
local sources = require 'bindings.run.sources'

local C = ffi.C
local runs = {}

---@class Run
---@field name string of the profiler
---@field opt table parsed options
---@field session ffi.cdata* struct session *
---@field is_recorded boolean its events happened before
---@field workload string[] command that is started
---@field everywhere boolean it takes the events of all CPUs, whatever the options say
---@field per_thread boolean the options name threads
---@field out Output
---@field services Services
---@field events table see bindings/select/events.lua
---@field loss Loss
---@field programs Bpf[] of scripts
---@field interval number ns between two ends of intervals; 0: there are none
---@field counts? Counts what is only counted
---@field marks? ffi.cdata* uint8_t *: where a BPF program looks up whether a thread is meant
---@field ended boolean the loop is to end, though the stream has more
---@field report_time? number ns: what reports that are made now are about
local Run = {}
Run.__index = Run

--- Wall time of what is reported now, as seconds and ns: the end of the interval, else that of the
--- last event. For a source that does not know the wall time it is the time on its own clock.
---@param run Run
---@param at? number ns since the session's base
---@return number sec
---@return number ns
---@return boolean is_wall
local function report_clock(run, at)
  local clock, stats = ffi.new 'struct session_clock', ffi.new 'struct session_stats'
  C.session_read_clock(run.session, clock)
  C.session_read_stats(run.session, stats)
  local time = at or run.report_time or stats.to
  if clock.wall_sec ~= clock.wall_sec then
    local sec = math.floor(clock.base / 1e9)
    return sec, clock.base - sec * 1e9 + time, false
  end
  return clock.wall_sec, clock.wall_nsec + time, true
end

---@param session ffi.cdata* struct session *
---@param script { name: string, profiler: table }
---@param opt table parsed options
---@param words string[] the workload
---@param found scripts.Scripts profilers that can be sources of events
---@return Run
function runs.new(session, script, opt, words, found)
  local run = setmetatable({
    name = script.name,
    opt = opt,
    session = session,
    is_recorded = C.session_is_recorded(session),
    workload = words,
    everywhere = script.profiler.everywhere or false,
    per_thread = attach.per_thread(opt, words),
    programs = {},
    interval = opt.interval or 0,
    ended = false,
  }, Run)
  local out, message = output.new {
    file = opt.output,
    format = opt.format,
    clock = function(at) return report_clock(run, at) end,
  }
  if not out then failure.raise('%s', message) end
  if opt.quiet then out.warn = function() end end
  run.out = out
  run.loss = loss.new(run.name, opt, out)
  run.services = services.new(session, out, opt.srcline)
  local inherits = not run.everywhere and attach.inherits(opt, words)
  run.events = events.new(session, run.services, script, opt, inherits)
  run.events.sources = sources.new(found)
  return run
end

--- Ends the loop behind the batch that is being handled.
function Run:stop() self.ended = true end

--- Has events counted instead of sampled, and read at the end of each interval.
---@param counts Counts
---@param interval? number ns, in place of -i
function Run:count(counts, interval)
  if self.counts then failure.raise('%s: session.count was called twice', self.name) end
  self.counts, self.interval = counts, interval or self.interval
end

--- Has the threads of the target marked for a BPF program.
---@param marks ffi.cdata* uint8_t *, one for each possible thread
---@param anchor any what the marks are part of, kept as long as the run
function Run:mark_threads(marks, anchor) self.marks, self._marks_of = marks, anchor end

--- Takes the events of all CPUs.
function Run:take_everywhere() self.everywhere = true end

--- Calls report(...), whose output has the time of an event instead of that of the batch.
---@param time number ns
---@param report function
function Run:report_at(time, report, ...)
  self.report_time = time
  report(...)
  self.report_time = nil
end

--- The process that the kernel leaves out: ours, unless somebody else is attached to.
---@return integer?
function Run:own_pid()
  local opt = self.opt
  local ours = not self.is_recorded and not opt.self and not attach.per_thread(opt, self.workload, self.everywhere)
  return ours and C.getpid() or nil
end

return runs
