-- SPDX-License-Identifier: GPL-2.0-only
--- Flight recorder (session.recorder): the kernel keeps the newest events of all CPUs in rings that it overwrites.
--- Nobody is woken, and nothing is read, until a script asks for a moment that has just been. The events have a session
--- of their own, because they are delivered later than those of the run that are newer.
local ffi = require 'ffi'
local bit = require 'bit'
local captures = require 'bpf.ways.capture'
local check = require 'bindings.base.check'
local cpu_list = require 'bindings.base.cpu_list'
local dispatch = require 'bindings.view.dispatch'
local event_filter = require 'bindings.select.event_filter'
local facade = require 'bindings.base.facade'
local facts = require 'bpf.run.facts'
local failure = require 'bindings.base.failure'
local public_event = require 'bindings.view.public_event'
local route = require 'bpf.plan.route'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'
local views = require 'bindings.view.views'

local C = ffi.C
local recorder = {}

local MAX_PAGES = 2 ^ 31 -- what a struct session_target can say
local DEFAULT_SIZE = 64 * 2 ^ 20 -- bytes of all rings
local PAGE = 4096
local READ_TASKS = 1e8 -- ns between looks whether the ring of task records fills
local FAR = 1e18 -- ns: no time to dump
local SETTLED = 1e6 -- ns after which the records of all CPUs are in their rings
local WATERMARK = 50 -- percent; nobody waits for it

--- Settings of session.recorder().
---@class RecorderSettings
---@field events string|string[]|Event[] the events to keep: texts as -e takes them, or values of options
---@field keep? string memory of all rings, such as '64M' (the default), or how long events are wanted, such as '10s'

--- What recorder:dump() takes.
---@class DumpSettings
---@field at? number ns, as in `ev._time`; default: now
---@field before? string time before `at`; default: all that is kept
---@field after? string time after `at`; default: none
---@field where? fun(ev: Ev): any only events for which it returns true
---@field each? fun(ev: Ev) called with each event, in order; default without `file`: out:print_event
---@field file? string writes the events to this file, as a recording that profscript and perf read
---@field done? fun(dump: Dump) called after the last event

---@class Dump
---@field events integer number of events
---@field lost integer events that were dropped, mostly during an earlier dump
---@field from number ns: no event is missing from then on, up to `to`
---@field to number

--- The newest events of all CPUs, see session.recorder().
---@class Recorder : Follower
local Recorder = { of_version = true }
Recorder.__index = Recorder
local public -- its facade

local function check_code(code, err)
  if code < 0 then failure.of(err) end
  return code
end

local function duration(text, what)
  if text == nil then return end
  local ns, message = units.duration(text)
  if not ns then error(('%s: %s'):format(what, message), 3) end
  return ns
end

--- Returns the bytes of all rings, and how far dumps reach back at most.
local function limits(keep)
  if keep == nil then return DEFAULT_SIZE end
  check.is(keep, 'string', "session.recorder: keep is a size such as '64M' or a time such as '10s'", 3)
  local bytes = units.size(keep)
  if bytes and bytes >= PAGE then return bytes end
  local ns = units.duration(keep)
  if bytes then error(("session.recorder: keep = '%s' is less than a page (%d bytes)"):format(keep, PAGE), 3) end
  if ns == 0 then error(("session.recorder: keep = '%s' keeps nothing"):format(keep), 3) end
  if not ns then
    error(("session.recorder: keep is a size such as '64M' or a time such as '10s', not '%s'"):format(keep), 3)
  end
  return DEFAULT_SIZE, ns
end

--- Asks to be polled when the events of a dump are in their rings.
local function wake(self)
  C.session_wake_after(self._run.session, math.max(self._pending.to + SETTLED - sys.now(self._base), 1))
end

local SETTINGS = { events = 'any', keep = 'any' }
local DUMP_SETTINGS = { at = 'number', before = 'string', after = 'string', where = 'function', each = 'function',
  file = 'string', done = 'function' }

--- Returns the events of a recorder, which are not those of the run any more.
local function select_events(instance, wanted)
  local list = {}
  local function add(one)
    if type(one) == 'string' then
      for _, event in ipairs(instance.set:select(one)) do list[#list + 1] = event end
    elseif type(one) == 'table' and one.class then
      list[#list + 1] = one
    elseif type(one) == 'table' then
      for _, element in ipairs(one) do add(element) end
    else
      error("session.recorder: events are texts such as 'sched:*', or values of options", 4)
    end
  end
  if wanted ~= nil then add(public_event.real(wanted)) end
  if #list == 0 then error('session.recorder takes { events = ... }', 3) end
  for _, event in ipairs(list) do event:derive() end
  return list
end

--- Creates the session of a recorder. It also knows the names and mappings of the tasks that the run does not trace, so
--- its events and stacks are named by it.
local function new_session(self)
  local run, err = self._run, ffi.new 'struct error'
  local source = C.live_new(err)
  if source == nil then failure.of(err) end
  local session = ffi.gc(C.session_new(source), C.session_free)
  self._session = session
  local tasks = C.session_tasks(session, 0)
  local context = setmetatable({
    task_name = function(tid, time) return ffi.string(C.tasks_name(tasks, tid, time - self._shift)) end,
    stack = function(e)
      if e.chain == nil then return -1 end
      e.time = e.time - self._shift
      local id = C.session_stack(session, e)
      e.time = e.time + self._shift
      return self._first_stack + id
    end,
  }, { __index = run.services })
  for _, event in ipairs(self._list) do
    event:view_in(context, views.new(event.name, event.list, context, event.params.sample))
  end
end

--- Creates a recorder, which starts with the session.
---@param instance Instance
---@param settings RecorderSettings
---@return Recorder
function recorder.new(instance, settings)
  check.types(settings, SETTINGS, 'session.recorder')
  local run = instance.run
  if run.is_recorded or run:pulls() then
    failure.usage("%s: session.recorder is for live events of this machine", instance.name)
  end
  local bytes, reach = limits(settings.keep)
  local self = setmetatable({
    _run = run, _bytes = bytes, _reach = reach, _list = select_events(instance, settings.events),
    _shift = 0, _tasks_at = 0,
  }, Recorder)
  new_session(self)
  run:follow(self)
  return public(self)
end

--- Returns why an event cannot be kept; nil if it can.
local function refuses(event)
  local request = event.request
  if event.machine then return 'it is of another machine' end
  if event.gate then return ('only profscript can tell which of its events %s passes on'):format(event.gate) end
  local text = event.filters.user
  if text then return ("the kernel cannot evaluate its filter '%s'"):format(text) end
  if request.counted == 1 or request.record ~= 0 or request.is_output == 1 then return 'it has no samples' end
end

---@package
---@return string
function Recorder:describe()
  local names = {}
  for i, event in ipairs(self._list) do names[i] = event.name end
  return 'flight recorder: ' .. table.concat(names, ', ')
end

--- Lets BPF programs write the events, if they can have them all: there are rings of one kind. Returns why not.
local function capture(self, pages)
  local run = self._run
  if run.opt.capture == 'perf' then return 'as --capture says' end
  local all, known, calls = captures.recorder(run.in_kernel, pages), facts.collect(run, self._list, {}), 0
  for _, event in ipairs(known.events) do calls = calls + (event.is_call and 1 or 0) end
  for _, event in ipairs(known.events) do
    local reason = captures.refuses(known, event, calls)
    if reason then return reason end
  end
  for _, event in ipairs(self._list) do
    local reason = all:add(event, 'all')
    if reason then
      for _, other in ipairs(self._list) do
        route.release(other.route)
        other.request.captured = ffi.new 'struct captured'
      end
      all:stop()
      return reason
    end
  end
  self._captures = all
end

--- Opens the rings. Called before the run's session starts, and with it the workload.
---@package
function Recorder:open()
  local run, err = self._run, ffi.new 'struct error'
  local own, cpus = run:own_threads(), run.opt.cpus
  for _, event in ipairs(self._list) do
    local reason = refuses(event)
    if reason then failure.usage('%s: session.recorder cannot keep %s: %s', run.name, event.name, reason) end
    event:complete(event_filter.for_kernel(event, own))
    if event.request.callchain ~= 0 and not self._first_stack then
      self._first_stack = run.services.frames.add_session(self._session)
    end
  end
  local n = #cpu_list.numbers(cpus or sys.read '/sys/devices/system/cpu/online')
  local pages = 1
  while pages * 2 * PAGE * n <= self._bytes and pages < MAX_PAGES do pages = pages * 2 end
  local reason = capture(self, pages)
  if reason and run.opt.verbose >= 1 and run.opt.capture ~= 'perf' then
    run.out:warn(('%s: the recorder reads events through perf: %s'):format(run.name, reason))
  end
  for _, event in ipairs(self._list) do
    check_code(C.session_add_event(self._session, event.request, err), err)
  end
  local target = ffi.new('struct session_target', {
    cpus = cpus, pages = pages, watermark = WATERMARK, overwrite = 1, everywhere = 1,
  })
  check_code(C.session_start(self._session, target, err), err)
end

--- Takes over the run's times. Called when the run's session has started.
---@package
function Recorder:start()
  local run = self._run
  local clock, ours = ffi.new 'struct session_clock', ffi.new 'struct session_clock'
  C.session_read_clock(run.session, clock)
  C.session_read_clock(self._session, ours)
  self._shift = ours.base - clock.base -- of our times
  self._base = clock.base
  C.session_share_wall(self._session, run.session)
end

--- Creates the file of a dump.
local function new_excerpt(self, path)
  local err, n = ffi.new 'struct error', #self._list
  local requests, formats = ffi.new('const struct event_request *[?]', n), C.session_formats(self._session, 0, err)
  for i, event in ipairs(self._list) do
    requests[i - 1] = event.request
    -- The file contains the formats that the session knows.
    local name = event.tracepoint and event.name:match ':(.*)$'
    if formats ~= nil and name then C.formats_find(formats, event.system, name, err) end
  end
  local excerpt = C.session_excerpt(self._session, path:find '^/' and path or './' .. path, requests, n, err)
  if excerpt == nil then error('recorder:dump: ' .. ffi.string(err.text), 3) end
  return ffi.gc(excerpt, C.excerpt_free)
end

--- Prints the events of a moment, or passes them to functions, as soon as `after` is over and the handler has returned.
--- Events of an earlier dump are not repeated.
---
---   recorder:dump { at = ev._time, before = '50ms', after = '5ms', where = function(e) return e._cpu == cpu end }
---@param settings? DumpSettings
---@return boolean accepted false: an earlier dump has not been done yet
function Recorder:dump(settings)
  settings = settings or {}
  check.types(settings, DUMP_SETTINGS, 'recorder:dump')
  if not self._base then error('recorder:dump: the run has not begun', 2) end
  local before = duration(settings.before, 'recorder:dump: before')
  local after = duration(settings.after, 'recorder:dump: after')
  if self._pending then return false end
  local at = settings.at or sys.now(self._base)
  local back = math.min(before or math.huge, self._reach or math.huge)
  self._pending = {
    from = math.max(at - back, 0), to = at + (after or 0), back = back, where = settings.where, each = settings.each,
    done = settings.done, excerpt = settings.file and new_excerpt(self, settings.file),
  }
  wake(self)
  return true
end

--- Returns a function that copies an event to a file, and names its task there. The task may have ended.
local function copier(self, excerpt)
  local err, names, session = ffi.new 'struct error', {}, self._session
  local task_name = self._list[1].context.task_name
  return function(e)
    local tid, name = e.tid, nil
    if tid > 0 then
      name = task_name(tid, e.time)
      if names[tid] == name then name = nil else names[tid] = name end
    end
    check_code(C.session_copy(session, excerpt, e, name, err), err)
  end
end

--- Returns a function(events, n) that passes on the events of a dump.
local function loop_of(self, dump)
  local handlers, out = {}, self._run.out
  local from, to, where = dump.from, dump.to, dump.where
  local each = dump.each or not dump.excerpt and function(ev) out:print_event(ev) end
  local copy = dump.excerpt and copier(self, dump.excerpt)
  local function pass_on(ev)
    local time = ev._time
    if time >= from and time <= to and (not where or where(ev)) then
      dump.events = dump.events + 1
      if copy then copy(views.event(ev)) end
      if each then each(ev) end
    end
  end
  for i, event in ipairs(self._list) do
    handlers[i] = { class = event.class, view = event.view, handlers = { pass_on } }
  end
  local function note_lost(e) dump.lost = dump.lost + tonumber(e.period) end
  return dispatch.loop('recorder', dispatch.handlers(handlers, note_lost))
end

--- Reads the rings.
local function read(self, dump)
  local batch, err, whole = ffi.new 'struct batch', ffi.new 'struct error', ffi.new 'double[1]'
  local shift, loop, whole_from = self._shift, loop_of(self, dump), 0
  repeat
    check_code(C.session_dump(self._session, dump.from - shift, dump.to - shift, batch, whole, err), err)
    local events = batch.events
    for i = 0, batch.n - 1 do events[i].time = events[i].time + shift end
    loop(events, batch.n)
    if dump.excerpt then check_code(C.session_copy(self._session, dump.excerpt, nil, nil, err), err) end
    if whole[0] > 0 then whole_from = whole[0] + shift end
    views.end_batch()
  until bit.band(batch.flags, C.BATCH_END) ~= 0
  if dump.excerpt then
    check_code(C.excerpt_end(dump.excerpt, err), err)
    C.excerpt_free(ffi.gc(dump.excerpt, nil))
  end
  return whole_from
end

--- Reads the records of tasks, if their rings are filling.
local function read_tasks(self)
  local batch, err, whole = ffi.new 'struct batch', ffi.new 'struct error', ffi.new 'double[1]'
  repeat
    check_code(C.session_dump(self._session, 0, FAR, batch, whole, err), err)
  until bit.band(batch.flags, C.BATCH_END) ~= 0
end

--- Does what was asked for, if it is time. Called between batches.
---@param is_last? boolean the run has ended
---@package
function Recorder:poll(is_last)
  local wanted, now = self._pending, sys.now(self._base)
  if now > self._tasks_at then
    self._tasks_at = now + READ_TASKS
    read_tasks(self)
  end
  if not wanted then return end
  if not is_last and now < wanted.to + SETTLED then return wake(self) end
  self._pending = nil
  wanted.events, wanted.lost = 0, 0
  local run, whole_from = self._run, nil
  run:report_at(wanted.to, function() whole_from = read(self, wanted) end)
  if whole_from > wanted.from and wanted.back < math.huge then
    run.out:warn(('%s: the recorder holds only the last %.3f ms before the end of the dump; more memory: keep = ...')
      :format(run.name, math.max(wanted.to - whole_from, 0) / 1e6))
  end
  if wanted.done then
    wanted.done { events = wanted.events, lost = wanted.lost, from = math.max(wanted.from, whole_from), to = wanted.to }
  end
end

--- Does what is left, and closes the rings. Called when the run's events have ended.
---@package
function Recorder:ended()
  if not self._session then return end
  local wanted = self._pending
  if wanted then wanted.to = math.min(wanted.to, sys.now(self._base)) end
  self:poll(true)
  if self._first_stack then
    C.session_stop(self._session) -- `stop` of the script may still print stacks
  else
    C.session_free(ffi.gc(self._session, nil))
  end
  if self._captures then self._captures:stop() end
  self._session, self._base = nil, nil
end

public = facade.class('recorder', Recorder, { 'dump' })

return recorder
