-- SPDX-License-Identifier: GPL-2.0-only
--- Counts: events that are only counted. Live, the kernel counts, and C reads all counts into one array at each
--- interval. With a recording, the periods of the samples are added up. Scripts see no difference.
local check = require 'bindings.base.check'
local condition = require 'bindings.select.condition'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local public_event = require 'bindings.view.public_event'
local views = require 'bindings.view.views'

local C = ffi.C
local counts = {}

local MAX_GROUP = 256 -- events per group, all read by one read(2)
local HARDWARE = { hardware = true, ['hw-cache'] = true, raw = true, pmu = true }

--- How session.count() counts.
---@class CountSettings
---@field every? integer interval in ns between reads and between calls of `interval`, instead of -i
---@field together? boolean count hardware events at the same times or not at all, so that their ratios are correct
---@field by? Event only on CPUs: an event with the sample part 'read', whose samples contain the counts for take()

--- The result of session.count(), up to date when `interval` and `stop` are called. Indexes of rows and events start
--- at 1. A row is a CPU, or with -p, -t and workloads a thread and its children.
---
---   for row = 1, counts:rows() do
---     local n, share = counts:get(row, 1)
---     if n then out:printf('%s %d: %d\n', counts.title, counts:id(row), n) end
---   end
---@class Counts
---@field events Event[] the counted events
---@field title 'CPU'|'THREAD' kind of the rows
local Counts = {}
Counts.__index = Counts

--- Returns all events of a list of events, lists of events (option values) and selectors.
local function flatten(set, list, found)
  for _, one in ipairs(type(list) == 'table' and not list.class and list or { list }) do
    if type(one) == 'string' then
      flatten(set, set:select(one), found)
    elseif type(one) ~= 'table' then
      error(('session.count takes events, not a %s'):format(type(one)))
    elseif one.class then
      found[#found + 1] = one
    else
      flatten(set, one, found)
    end
  end
  return found
end

--- Assigns the events to groups. Software events are read together. Hardware events get groups of their own, so
--- that the kernel can multiplex them on few counters, unless `together` is set.
local function group(list, together)
  local software, last = 0, 0
  for _, event in ipairs(list) do
    if HARDWARE[event.kind] and not together then
      last = last + 1
      event.request.group = last
    else
      if software % MAX_GROUP == 0 then
        last = last + 1
        list.group = last
      end
      software = software + 1
      event.request.group = list.group
    end
    if event.request.record ~= 0 then failure.usage('%s cannot be counted', event.name) end
    event.request.counted = 1
  end
end

--- Sets up the rows of a recording, for which sample periods are added up in Lua.
local function set_up_recorded(self)
  local sums, n = {}, #self._events
  self._sums = sums
  local function new_row(id)
    local at = 1
    while self._ids[at] and self._ids[at] < id do at = at + 1 end
    table.insert(self._ids, at, id)
    sums[id] = ffi.new('double[?]', n)
    return sums[id]
  end
  self.handlers = {}
  for i, event in ipairs(self._events) do
    self.handlers[i] = {
      class = event.class,
      view = event.view,
      handlers = {
        function(ev)
          local cpu = ev._cpu
          local row = sums[cpu] or new_row(cpu)
          row[i - 1] = row[i - 1] + tonumber(ev._period)
        end,
      },
    }
  end
end

--- Returns what has been counted on a CPU since its last clock sample, by event.
local function sums_of(self, cpu)
  local sums = self._between[cpu]
  if not sums then
    sums = ffi.new('int64_t[?]', #self._events + 1)
    self._between[cpu] = sums
  end
  return sums
end

--- Sets up the counts of a source by its clock: of the samples between two of the clock on the same CPU.
local function set_up_sampled(instance, self)
  self._clock_times, self._between, self.handlers = {}, {}, {}
  for i, event in ipairs(self._events) do
    self.handlers[i] = { class = event.class, view = event.view, handlers = { function(ev)
      local sums = sums_of(self, ev._cpu)
      sums[i] = sums[i] + ev._period
      views.pass(ev)
    end } }
  end
  instance.counts = self
end

local public -- creates the facade of counts

---@param instance Instance
---@param list Event[]|string[] or lists of them
---@param settings? CountSettings
---@return Counts
function counts.new(instance, list, settings)
  settings = settings or {}
  local run, by = instance.run, settings.by and public_event.one(settings.by, 'session.count: by')
  local events = flatten(instance.set, public_event.real(list), {})
  local self = setmetatable({
    _events = events,
    _run = run,
    _session = run.session,
    _out = ffi.new 'struct counts',
    _ids = {},
  }, Counts)
  self._delta = ffi.new('int64_t[?]', #events + 1) -- written by take(), but condition() always needs it
  instance.clock = by
  local new = public(self, { events = public_event.of(events), title = run.per_thread and 'THREAD' or 'CPU' })
  if instance.parent then -- events of a source are sampled, not counted
    if by then set_up_sampled(instance, self) end
    return new
  end
  run:count(self, settings.every)
  group(events, settings.together or by)
  if by then
    if run.is_recorded or run.per_thread then
      failure.usage('%s: can only count on the CPUs of this machine, not for threads or recordings', instance.name)
    end
    by.request.reads = C.READS_COUNTED
    self._last, self._size = {}, ffi.new 'uint32_t[1]'
  end
  if run.is_recorded then set_up_recorded(self) end
  return new
end

--- Returns the place of each event among those that are counted.
local function columns(self)
  local of, n = {}, 0
  for _, event in ipairs(self._run.events:shown()) do
    if event.request.counted == 1 then of[event], n = n, n + 1 end
  end
  local list = {}
  for i, event in ipairs(self._events) do list[i] = of[event] end
  return list
end

--- Replaces the counts by those since the last call. Called by the driver.
---@package
function Counts:read()
  if not self._run.is_open then return end
  if not self._sums then
    C.session_read_counts(self._session, self._out)
    return
  end
  self._values = self._values or {}
  for id, sums in pairs(self._sums) do
    local values = self._values[id] or ffi.new('double[?]', #self._events)
    ffi.copy(values, sums, ffi.sizeof(sums))
    ffi.fill(sums, ffi.sizeof(sums))
    self._values[id] = values
  end
end

local function check_event(self, event, name)
  if not self._events[event] then
    error(('%s takes the index of an event (1 to %d), not %s'):format(name, #self._events, check.shown(event)), 3)
  end
end

local function check_row(self, row, name)
  if type(row) ~= 'number' or not (row >= 1 and row <= self:rows() and row == math.floor(row)) then
    error(('%s takes the index of a row (1 to %d), not %s'):format(name, self:rows(), check.shown(row)), 3)
  end
end

--- Reads the counts in a sample of `by`, in its handler.
---@param ev Ev
---@return number? total count of `by` itself on this CPU; nil: the sample contains no counts
---@return number? delta count of `by` since its last sample
function Counts:take(ev)
  local e = views.event(ev, 'counts:take')
  if self._clock_times then return self:_take_sampled(e) end
  if not self._size then error('counts:take requires session.count(events, { by = event })', 2) end
  local words = C.session_sample_part(self._session, e, C.PERF_SAMPLE_READ, self._size)
  local cpu, n, delta = e.cpu, #self._events, self._delta
  if words == nil or words[0] ~= n + 1 then return nil end
  local last = self._last[cpu]
  if not last then
    last = ffi.new('uint64_t[?]', n + 1)
    self._last[cpu] = last
  end
  for i = 0, n do -- words[0] is the number of values; each value is followed by its event's id
    local value = words[2 * i + 1]
    delta[i] = value - last[i]
    last[i] = value
  end
  return tonumber(words[1]), tonumber(delta[0])
end

--- Does the same for a source.
function Counts:_take_sampled(e)
  local cpu, delta = e.cpu, self._delta
  local last, sums = self._clock_times[cpu], sums_of(self, cpu)
  self._clock_times[cpu] = e.time
  ffi.copy(delta, sums, ffi.sizeof(sums))
  ffi.fill(sums, ffi.sizeof(sums))
  if not last then return nil end
  delta[0] = e.time - last
  return e.time, e.time - last
end

--- Returns the count of an event between the last two samples on the CPU of the last take().
---@param event integer
---@return number
function Counts:delta(event)
  check_event(self, event, 'counts:delta')
  return tonumber(self._delta[event])
end

--- Returns whether the event is counted on this CPU.
---@param cpu integer
---@param event integer
---@return boolean
function Counts:has(cpu, event)
  check_event(self, event, 'counts:has')
  if self._out.nr_rows == 0 then self:read() end
  for row = 1, self:rows() do
    if self:id(row) == cpu then return self:get(row, event) ~= nil end
  end
  return false
end

--- Compiles a C expression over the counts of take(). Its variables are the aliases of the events, and `period` for
--- the count of `by`.
---@param text string
---@return fun(): boolean
function Counts:condition(text)
  check.is(text, 'string', 'counts:condition takes a C expression')
  local names = { 'period' }
  for i, event in ipairs(self._events) do names[i + 1] = event.alias end
  return condition.compile(self._run.services, 'the counts', names, text, self._delta)
end

--- Returns the current number of rows.
---@return integer
function Counts:rows()
  return self._sums and #self._ids or self._out.nr_rows
end

--- Returns the CPU or thread id of a row. Rows are sorted by id.
---@param row integer
---@return integer
function Counts:id(row)
  check_row(self, row, 'counts:id')
  if self._sums then return self._ids[row] end
  return self._out.ids[row - 1]
end

--- Returns the count of an event since the last call of `interval`.
---@param row integer
---@param event integer
---@return number? value scaled up if share < 1; nil: not counted on this CPU (cpus=)
---@return number? share fraction of the time in which it was counted; below 1 if there are too few hardware counters
function Counts:get(row, event)
  check_row(self, row, 'counts:get')
  check_event(self, event, 'counts:get')
  if self._sums then
    local values = self._values and self._values[self._ids[row]]
    return values and values[event - 1] or 0, 1
  end
  local out = self._out
  self._columns = self._columns or columns(self)
  local count = out.values[(row - 1) * out.nr_events + self._columns[event]]
  if count.share < 0 then return nil end
  return math.floor(count.value + 0.5), count.share
end

--- Calls a function with each count since the last call of `interval`, row by row, without those that are not counted
--- on a CPU (cpus=).
---@param each fun(id: integer, event: integer, value: number, share: number) the arguments are the results of id(), the
--- index of the event, and the results of get()
function Counts:each(each)
  check.is(each, 'function', 'counts:each takes a function')
  for row = 1, self:rows() do
    for event = 1, #self._events do
      local value, share = self:get(row, event)
      if value then each(self:id(row), event, value, share) end
    end
  end
end

public = facade.class('counts', Counts, { 'condition', 'delta', 'each', 'get', 'has', 'id', 'rows', 'take' })

return counts
