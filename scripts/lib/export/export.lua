-- SPDX-License-Identifier: GPL-2.0-only
--- Exports: passes what a run sees to the writer of a format, which writes a file for another program.
---
--- A format is a module with the function new(target), which returns an exporter. Its methods are optional: what a
--- format cannot express, it leaves out.
local attach = require 'bindings.select.attach'
local bit = require 'bit'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local files = require 'lib.export.file'
local formats = require 'lib.export.formats'
local lacks = require 'lib.export.lacks'
local lanes = require 'lib.export.lanes'
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'

local C = ffi.C
local exports = {}

local MEMBER_SHIFT = tonumber(C.EVENT_MEMBER_SHIFT)

---@class Exporter
---@field event? fun(self, event: Event): fun(e: ffi.cdata*): boolean? is called at the first event of a class, and
--- returns what writes its events (struct event *), and returns false for one that is left out
---@field sample? fun(self, event: Event): fun(e: ffi.cdata*, stack: integer): boolean? the same for events with stacks
---@field slice? fun(self, source: SliceSource): fun(p: ffi.cdata*, second?: ffi.cdata*): boolean returns what writes
--- a pair of a matcher (struct pair *, struct event *), or a slice of a script, which has no second event; it returns
--- false if it left out the pair
---@field counter? fun(self, event: Event, id: integer, title: string, time: number, value: number) the count of an
--- event during an interval that ended at time, for a CPU or thread
---@field lost? fun(self, e: ffi.cdata*) an EVENT_LOST
---@field switches? Switches it shows who runs
---@field queues? RunQueues it shows who waits
---@field finish? fun(self, time: number): integer? completes the file; time: the end of the run. It returns how many
--- events or slices it has left out in the end

--- The pairs of a matcher, or the slices of a script.
---@class SliceSource
---@field by 'cpu'|'tid'|'key' what the key is
---@field key_text fun(key: ffi.cdata*): string
---@field has_addresses? boolean keys are addresses
---@field name fun(p: ffi.cdata*): string of p.kind
---@field depth? integer how deep the slices of a key are nested; default: 1
---@field value? string name of p.first_value

--- What a format writes to, and where it finds names.
---@class ExportTarget
---@field file ExportFile
---@field name string the profiler's name
---@field frames Frames
---@field before_forget fun(call: fun()) sets what to call before the ids of stacks become invalid
---@field host fun(member: integer): string? name of another machine
---@field task_name fun(e: ffi.cdata*): string name of the thread of an event
---@field last_name fun(tid: integer): string last name of a thread of this machine
---@field is_paired fun(event: Event): boolean whether the events may be parts of pairs
---@field clock fun(): ExportClock valid from the first event
---@field partial? string why the events are not all of a recording, known when the file is completed

---@class ExportClock
---@field base ffi.cdata* int64_t: time of ev.time == 0 on the events' clock, ns
---@field boot number what CLOCK_BOOTTIME is ahead of it; 0 if that is unknown
---@field wall? number seconds since the epoch at ev.time == 0

---@class Export : Follower
local Export = { only_session = '--export' }
Export.__index = Export

--- Returns the clock of the events.
local function read_clock(run)
  local clock = ffi.new 'struct session_clock'
  C.session_read_clock(run.session, clock)
  local boot = 0
  if not run.is_recorded then
    local mono = C.clock_monotonic()
    boot = tonumber(ffi.cast('int64_t', C.clock_boottime() - mono))
    if boot < 1000000 then boot = 0 end -- never suspended: the clocks are the same
  end
  local has_wall = clock.wall_sec == clock.wall_sec
  return {
    base = ffi.cast('int64_t', C.session_exact_time(run.session, 0)),
    boot = boot,
    wall = has_wall and clock.wall_sec + clock.wall_nsec / 1e9 or nil,
  }
end

--- Returns the target of a format.
local function target_of(self)
  local run, services = self.run, self.run.services
  local function services_of(e)
    local event = self.run.events.by_class[e.class]
    return event and event.context or services
  end
  return {
    file = self.file,
    name = run.name,
    frames = services.frames,
    before_forget = services.frames.before_forget,
    host = function(member)
      local host = C.session_host(run.session, member)
      return host ~= nil and text.safe(ffi.string(host)) or nil
    end,
    task_name = function(e) return services_of(e).task_name(e.tid, e.time) end,
    last_name = function(tid) return services.task_name(tid, math.huge) end,
    is_paired = function(event) return self.paired[event.class] or false end,
    clock = function()
      self.clock = self.clock or read_clock(run)
      return self.clock
    end,
  }
end

---@param run Run
---@return Export
function exports.new(run)
  local format, path = formats.parse(run.opt.export)
  if not format then failure.usage('%s: %s', run.name, path) end
  return setmetatable({ run = run, format = format, path = path, paired = {}, writers = {},
    n = { events = 0, slices = 0, samples = 0, losses = 0, lost = 0, counts = 0,
      left_out = 0 } }, Export)
end

--- Creates the exporter.
function Export:open()
  self.file = files.new(self.path, self.run.progress)
  self.target = target_of(self)
  self.exporter = self.format.new(self.target)
end

--- Creates the file, just before the first batch.
function Export:start()
  self.file:create()
  local run = self.run
  if not (run.is_recorded and self.exporter.switches) then return end
  local exported, catalog = {}, run.events.catalog
  for _, event in ipairs(run.events.list) do exported[event.name] = true end
  for _, line in ipairs(lacks.events(exported, function(name) return catalog:has(name) end)) do
    run.out:warn(('%s: %s'):format(run.name, line))
  end
end

--- Returns whether the run reads the switches of some tasks only, so that others are missing in any case.
local function chooses_switches(run)
  local opt = run.opt
  if attach.per_thread(opt, run.workload, run.everywhere) or opt.cgroups and #opt.cgroups > 0 then return true end
  for _, event in ipairs(run.events.list) do
    local filters = event.filters
    if event.name == 'sched:sched_switch' and (filters.kernel or filters.user) then return true end
  end
  return false
end

--- Exports the events of another version of the script to the same file.
function Export:again(run) self.run = run end

--- Returns what writes the events of a class. It is created at the first one, because a glob can select thousands of
--- classes.
---@param class integer
---@return fun(e: ffi.cdata*)
function Export:make(class)
  jit.off() -- see bindings/init.lua
  local event, exporter, n = self.run.events.by_class[class], self.exporter, self.n
  local put = event and exporter.event and exporter:event(event)
  local sample = event and event.request.callchain ~= 0 and exporter.sample and exporter:sample(event)
  local stack, is_sample = self.run.services.stack, event and event.request.perf_event ~= 0
  local write = function() end
  local function add(e)
    if put(e) == false then n.left_out = n.left_out + 1 else n.events = n.events + 1 end
  end
  if sample then
    write = function(e)
      if e.chain ~= nil then
        if sample(e, stack(e)) == false then n.left_out = n.left_out + 1 else n.samples = n.samples + 1 end
        if is_sample then return end
      end
      if put then add(e) end
    end
  elseif put then
    write = add
  end
  jit.on()
  return write
end

--- Adds the pass that exports the events of a version of the script. Versions share what writes the events of a class.
function Export:add_passes(passes, run)
  local writers, made, file = {}, self.writers, self.file
  local function leave_out() end
  for class = 0, tonumber(C.EVENT_FIRST) - 1 do writers[class] = leave_out end
  for class in pairs(run.events.by_class) do writers[class] = leave_out end
  writers[tonumber(C.EVENT_LOST)] = function(e) self:lose(e) end
  for _, event in ipairs(run.events.list) do
    local class = event.class
    writers[class] = function(e)
      made[class] = made[class] or self:make(class)
      writers[class] = made[class]
      writers[class](e)
    end
  end
  passes:add('export', 'export', function(list, n)
    for i = 0, n - 1 do
      local e = list + i
      writers[e.class](e)
    end
    file:poll()
  end)
end

function Export:lose(e)
  local n = self.n
  n.losses, n.lost = n.losses + 1, n.lost + tonumber(e.period)
  if self.exporter.lost then self.exporter:lost(e) end
end

--- Returns what exports the pairs of a matcher; nil if the format has no slices.
---@param source SliceSource
---@param stages Event[][]
---@return fun(pairs: ffi.cdata*, found: integer, list: ffi.cdata*)? export takes struct pair *, and the events
function Export:slices(source, stages)
  if not self.exporter.slice then return end
  for _, stage in ipairs(stages) do
    for _, event in ipairs(stage) do self.paired[event.class] = true end
  end
  local function alias(class)
    local event = self.run.events.by_class[class]
    return event and event.alias or 'exit'
  end
  source.name = function(p) return ('%s → %s'):format(alias(p.first_class), alias(p.second_class)) end
  local put, n, file = self.exporter:slice(source), self.n, self.file
  return function(pairs_, found, list)
    for i = 0, found - 1 do
      local p = pairs_ + i
      if put(p, list + p.second) then n.slices = n.slices + 1 else n.left_out = n.left_out + 1 end
    end
    file:poll()
  end
end

--- Returns what exports slices of a script.
---@param source { by: 'cpu'|'tid'|'key', names: string[], nested?: boolean, key_text?: fun(key: integer64): string,
--- has_addresses?: boolean }
---@return fun(kind: integer, key: integer, from: number, to: number) add kind: index in names; in the order of `to`
function Export:script_slices(source)
  local p, put, n, file = ffi.new 'struct pair', nil, self.n, self.file
  local function open()
    file = self.file
    put = self.exporter.slice and self.exporter:slice {
      by = source.by,
      depth = source.nested and lanes.NESTED or nil,
      name = function(one) return source.names[one.kind] end,
      key_text = source.key_text or units.number,
      has_addresses = source.has_addresses,
    } or false
  end
  return function(kind, key, from, to)
    if put == nil then open() end
    if not put then return end
    p.kind, p.key, p.first_time, p.second_time = kind, key, from, to
    if put(p) then n.slices = n.slices + 1 else n.left_out = n.left_out + 1 end
    file:poll()
  end
end

--- Exports the events counted during an interval.
---@param time number ns: its end
function Export:interval(time)
  local counts, exporter = self.run.counts, self.exporter
  if not counts or not exporter.counter then return end
  for row = 1, counts:rows() do
    for i, event in ipairs(counts._events) do
      local value = counts:get(row, i)
      if value then
        exporter:counter(event, counts:id(row), self.run.per_thread and 'thread' or 'CPU', time, value)
        self.n.counts = self.n.counts + 1
      end
    end
  end
  self.file:poll()
end

--- Exports those of the last one.
function Export:stop(time) self:interval(time) end

--- Completes the file, also after a failure: it holds what came before. If that fails, too, removes it.
function Export:close()
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(self.run.session, stats)
  self.run.progress:stage('writing ' .. self.path)
  local ok, problem = xpcall(self.finish, failure.traceback, self, stats.end_time)
  if ok then return end
  self.file:discard()
  error(problem, 0)
end

--- Completes the file.
---@param time number ns: the end of the run
function Export:finish(time)
  local n, out, partial = self.n, self.run.out, self.run.partial
  if partial then
    self.target.name, self.target.partial = ('%s (partial: %s)'):format(self.run.name, partial), partial
  end
  if self.exporter.finish then n.left_out = n.left_out + (self.exporter:finish(time) or 0) end
  self.file:close()
  local parts = {}
  local function part(count, what) if count > 0 then parts[#parts + 1] = ('%d %s'):format(count, what) end end
  part(n.events, 'events')
  part(n.slices, 'slices')
  part(n.samples, 'stacks')
  part(n.counts, 'counts')
  part(n.losses, ('losses (%d events)'):format(n.lost))
  local hint = #parts == 0 and not self.exporter.event and ': the format holds only stacks, which -g records' or ''
  out:warn(('%s: exported %s to %s (%s)%s'):format(self.run.name, #parts > 0 and table.concat(parts, ', ') or 'nothing',
    self.path, self.format.name, partial and hint .. ': partial, ' .. partial or hint))
  local switches, queues = self.exporter.switches, self.exporter.queues
  local line = switches and not chooses_switches(self.run)
    and lacks.switches(switches.seen, switches.broken, queues and queues.is_partial)
  if line then out:warn(('%s: %s'):format(self.run.name, line)) end
  if n.left_out > 0 then
    out:warn(('%s: %d events, slices or stacks were left out: there are too many'):format(self.run.name, n.left_out))
  end
end

--- The member of a join that an event is of.
---@param e ffi.cdata*
---@return integer
function exports.member(e) return bit.rshift(e.flags, MEMBER_SHIFT) end

return exports
