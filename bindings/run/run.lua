-- SPDX-License-Identifier: GPL-2.0-only
--- Run: the state of one run, and the functions by which its parts change it. bindings/run/driver.lua drives it.
local ffi = require 'ffi'
local attach = require 'bindings.select.attach'
local axis = require 'bindings.print.axis'
local events = require 'bindings.select.events'
local bpf = require 'bindings.bpf.program'
local failure = require 'bindings.base.failure'
local followers = require 'bindings.run.followers'
local in_kernel = require 'bpf.run.in_kernel'
local libc = require 'bindings.base.libc'
local loss = require 'bindings.report.loss'
local machines = require 'bindings.select.machines'
local needs = require 'bpf.plan.needs'
local output = require 'bindings.print.output'
local progress = require 'bindings.print.progress'
local services = require 'bindings.run.services'
local sources = require 'bindings.run.sources'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'
local thread_set = require 'bpf.groups.thread_set'
local watch = require 'bindings.run.watch'

local C = ffi.C
local runs = {}

---@class Run
---@field name string the profiler's name
---@field opt table parsed options
---@field session ffi.cdata* struct session *
---@field is_recorded boolean the events come from a recording
---@field workload string[] command to start
---@field profiler table the script's table
---@field spec opt.Spec the script's options
---@field everywhere boolean uses the events of all CPUs, even if the options name threads
---@field per_thread boolean the options name threads
---@field named? ThreadSet the threads of a recording that the options name
---@field out Output
---@field services Services
---@field events table see bindings/select/events.lua
---@field axis Axis how times are printed
---@field loss Loss
---@field programs Bpf[] BPF objects of scripts
---@field followers Follower[]
---@field file_calls { files: FileWatch, call: fun() }[] what scripts do when a file is saved
---@field in_kernel InKernel events that BPF programs take
---@field interval number ns; 0: no intervals
---@field progress Progress
---@field export? Export the follower that writes the events to a file for another program
---@field serving? Serving the one that shows reports to other programs
---@field partial? string why the results of a recording are not of all of it
---@field sends_all? boolean all events of the run are pushed, so the profiler gets none
---@field printed_events fun(): Event[] those that the script may print
---@field default_pages boolean the size of the rings is not given
---@field counts? Counts events that are only counted
---@field marks? ffi.cdata* uint8_t *: target threads by tid, read by a BPF program
---@field begun? ffi.cdata* uint64_t *: when the events start, read by that program
---@field is_open boolean the session has started
---@field began number ns, CLOCK_MONOTONIC
---@field ended boolean the loop must end after this batch
---@field stopped ffi.cdata* int32_t[1]: the script has ended the run, so its handlers get no more events
---@field report_time? number ns, time of the current report
---@field draws? boolean a terminal shows what a run without -i has collected
---@field left? { [1]: number } events until -N ends the run, for all versions of its script
---@field states table<string, any> values of session.state() by name
---@field kept? table<string, any> those of the version of the script before
---@field is_again? boolean for another version of its script, see again()
local Run = {}
Run.__index = Run

--- Returns the wall time of the current report: the end of the interval, or the last event. If the source has no wall
--- time, returns the time of its own clock.
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
---@param found scripts.Scripts profilers that can be event sources
---@param before? Run that of another version of the script, in the session before
---@return Run
function runs.new(session, script, opt, words, found, before)
  local run = setmetatable({
    name = script.name,
    opt = opt,
    session = session,
    is_recorded = C.session_is_recorded(session),
    workload = words,
    profiler = script.profiler,
    spec = script.spec,
    is_shipped = script.is_shipped,
    everywhere = script.profiler.everywhere or false,
    metrics = script.profiler.metrics or {},
    per_thread = attach.per_thread(opt, words),
    named = attach.names_recorded(opt) and thread_set.recorded(opt, attach.inherits(opt, words)) or nil,
    programs = {},
    default_pages = not opt.mmap_pages,
    file_calls = {},
    left = opt.exit_n and { opt.exit_n },
    states = {},
    kept = before and before.states,
    interval = opt.interval or 0,
    is_open = false,
    began = sys.now(),
    ended = false,
    stopped = ffi.new 'int32_t[1]',
  }, Run)
  local out, message = output.new {
    file = opt.output,
    format = opt.format,
    clock = function(at) return report_clock(run, at) end,
  }
  if not out then failure.raise('%s', message) end
  if opt.quiet then out.warn = function() end end
  run.progress = progress.new(run.name, out, opt.quiet)
  run.out, run.in_kernel = out, in_kernel.new(run)
  run.axis = axis.new(session, opt)
  run.loss = loss.new(run.name, opt, out, run.axis, function(member)
    local host = C.session_host(session, member)
    return host ~= nil and text.safe(ffi.string(host)) or nil
  end)
  local function event_of(class) return run.events.by_class[class] end
  run.services = services.new(session, out, event_of, opt.srcline, run.progress)
  local inherits = not run.everywhere and attach.inherits(opt, words)
  run.followers = followers.new(run, before)
  run.events = events.new(session, run.services, script, opt, inherits, sources.new(found))
  return run
end

--- Writes the buffered output. Returns nil if its reader is gone.
---@param out Output
---@return boolean? ok
function runs.flush(out)
  local ok, message = out:flush()
  if not ok and message ~= 'EPIPE' then failure.raise('%s', message) end
  return ok
end

--- Returns the same run for another version of its script. Its events are not opened.
---@param script scripts.Script
---@param opt table its parsed options
---@param found scripts.Scripts
---@return Run
function Run:again(script, opt, found)
  local run = setmetatable({}, Run)
  for key, value in pairs(self) do run[key] = value end
  run.opt, run.profiler, run.spec, run.programs, run.counts = opt, script.profiler, script.spec, {}, nil
  run.followers = followers.lasting(self.followers)
  run.file_calls = {}
  run.everywhere = script.profiler.everywhere or false
  run.in_kernel = in_kernel.new(run)
  run.in_kernel.captures, run.in_kernel.second = self.in_kernel.captures, self.in_kernel.second
  run.events = self.events:again(script, opt, sources.new(found))
  run.states, run.kept, run.is_again = {}, self.states, true
  return run
end

--- Ends the loop after the current batch.
---@param time? number ns: time of the last report; default: the end of the events
function Run:stop(time)
  self.ended, self.report_time = true, time or self.report_time
end

--- Notes that the session has started.
---@param anchors any owners of memory that the session uses
function Run:opened(anchors) self.is_open, self._anchors = true, anchors end

--- Notes which events the script may print.
---@param list fun(): Event[]
function Run:print_only(list) self.printed_events = list end

--- Makes the waits of the session end when a descriptor is readable. Only valid before the session starts, except to
--- end this.
---@param fd integer -1: none
function Run:wake_on(fd) C.session_wake_on(self.session, fd) end

--- Adds the BPF object of a script, which is kept alive for the run.
---@param program Bpf
function Run:add_program(program)
  if #self.programs == 0 then self:follow(bpf.follower(self)) end
  table.insert(self.programs, program)
end

--- Adds what goes along with the run.
---@param follower Follower
function Run:follow(follower) table.insert(self.followers, follower) end

--- Calls a function of all followers. Returns whether one of them wants the run to end.
---@param name string see Follower
---@param argument any
---@return boolean ends
function Run:call(name, argument) return followers.call(self.followers, name, argument) end

--- Does the same, and calls the others even if one fails. Returns false and the first problem then.
---@param name string see Follower
---@return boolean ok
---@return any problem
function Run:call_all(name, ...) return followers.call_all(self.followers, name, ...) end

--- Calls a function when a file is saved.
---@param path string
---@param call fun()
---@return string? message if it cannot be watched
function Run:on_file(path, call)
  local files = watch.new()
  local ok, message = files:add { path }
  if not ok then return message end
  C.session_look_around(self.session)
  table.insert(self.file_calls, { files = files, call = call })
end

--- Sets the events that are only counted, and read at the end of each interval.
---@param counts Counts
---@param interval? number ns, instead of -i
function Run:count(counts, interval)
  if self.counts then failure.raise('%s: session.count was called twice', self.name) end
  self.counts, self.interval = counts, interval or self.interval
end

--- Sets the interval of a run that has none.
---@param interval number ns
function Run:want_interval(interval)
  if not self.opt.interval then self.opt.interval, self.interval = interval, interval end
end

--- Makes a run without -i, of which the user sees nothing before its end, draw what it has collected.
---@param interval number ns
function Run:draw_every(interval)
  local is_seen = self.out.tty and self.out.format == 'text' and #self.workload == 0
  if self.interval == 0 and is_seen and not self.is_recorded then self.draws, self.interval = true, interval end
end

--- Notes that all events of the run are pushed, so that the profiler gets none.
function Run:send_all() self.sends_all = true end

--- Sets the array in which the target threads are marked for a BPF program.
---@param marks ffi.cdata* uint8_t *, indexed by tid
---@param anchor any owner of the array, kept alive for the run
---@param begun? ffi.cdata* uint64_t *: becomes the time at which the events start
function Run:mark_threads(marks, anchor, begun) self.marks, self._marks_of, self.begun = marks, anchor, begun end

--- Makes the run use the events of all CPUs.
function Run:take_everywhere() self.everywhere = true end

--- Calls report(...) with the given time as the report's time.
---@param time number ns
---@param report function
function Run:report_at(time, report, ...)
  self.report_time = time
  report(...)
  self.report_time = nil
end

--- Returns the time of the last report, which becomes the current one.
---@param end_time number ns: the end of the events
---@return number time
function Run:last_report(end_time)
  self.report_time = self.report_time or end_time
  return self.report_time
end

--- Returns the first given option with a need, as on the command line; nil: there is none.
---@param word string see bpf/plan/needs.lua
---@return string?
function Run:needs(word) return needs.given(self.spec.list, self.opt, word) end

--- Returns the line about the number of its events.
---@return string
function Run:totals()
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(self.session, stats)
  return ('profscript: %d events, %d lost, %d late'):format(tonumber(stats.events) + self.in_kernel:count(),
    tonumber(stats.lost), tonumber(stats.late))
end

--- Returns whether events come from other machines.
function Run:pulls()
  local input = self.opt.input
  return #self.events.machines.list > 0 or input ~= nil and machines.is_address(input)
end

--- Notes why the results of a recording are not of all of it.
---@param reason string
function Run:cut(reason) self.partial = reason end

--- Returns the process to exclude in the kernel: this one, unless the target is threads.
---@return integer?
function Run:own_pid()
  local opt = self.opt
  local ours = not self.is_recorded and not opt.self and not attach.per_thread(opt, self.workload, self.everywhere)
  return ours and libc.getpid() or nil
end

--- Returns the threads to exclude in the kernel: those of that process.
---@return integer[]?
function Run:own_threads()
  local pid, list = self:own_pid(), nil
  if pid then
    list = { pid }
    for _, name in ipairs(self.serving and sys.readdir '/proc/self/task' or {}) do
      if tonumber(name) ~= pid then list[#list + 1] = tonumber(name) end
    end
  end
  return list
end

return runs
