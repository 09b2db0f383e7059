-- SPDX-License-Identifier: GPL-2.0-only
--- Witnesses: perf's counters of events that BPF programs take. A program that misses events, counts them twice or has
--- a wrong filter cannot say so itself. The kernel's own counter, filter and choice of tasks can. A count costs the
--- traced task 35 to 40 ns per event (80 ns if the kernel counts the runs of programs instead), so this is done with -v
--- only.
---
--- Counters and programs do not begin and end together. Each counter is read before and after programs begin, and again
--- before and after they end. So what programs count must be between two figures:
---
---   before the end - after the begin <= taken <= after the end - before the begin
local event_filter = require 'bindings.select.event_filter'
local ffi = require 'ffi'

local C = ffi.C
local witnesses = {}

local MOST = 16 -- events: each is a descriptor for each CPU or thread
local IN_FLIGHT = 2 -- events of each counter that one side has counted and the other has not yet

--- What perf has counted of an event.
---@class Witnessed
---@field count number in all
---@field least number while programs took it
---@field most number

---@class Witnesses
---@field package _run Run
---@field package _of table<Event, integer> place among the counted events, from 0
---@field package _list Event[]
---@field package _sums number[] by place + 1: so far
---@field package _marks table<string, number[]>
local Witnesses = {}
Witnesses.__index = Witnesses

--- Returns whether a run can have them: one whose events begin and end with the session, and in which nothing else is
--- counted.
local function are_possible(run)
  local opt = run.opt
  return not (run.is_recorded or opt.dry_run or opt.watch or opt.overwrite or run.counts or run.serving or run:pulls()
    or run.everywhere and run.per_thread)
end

--- Returns whether programs take an event, with its filter, until the end of the run. Sources may end before.
local function is_taken(event)
  local one, is_sources = event.route, event.owner and event.owner.parent
  return event.tracepoint and not (event.is_derived or event.gate or event.attrs.cpus or is_sources)
    and (one.is_captured and not one.sent or one.does ~= nil)
end

--- Lets the session open the counters. Returns nil if there are none.
---@param run Run before its events are opened
---@return Witnesses?
function witnesses.new(run)
  local self = setmetatable({ _run = run, _list = {}, _of = {}, _sums = {}, _marks = {} }, Witnesses)
  local list, err = self._list, ffi.new 'struct error'
  for _, event in ipairs(are_possible(run) and run.events.list or {}) do
    if is_taken(event) then list[#list + 1] = event end
  end
  if #list == 0 or #list > MOST then return end
  for i, event in ipairs(list) do
    local request, filter = ffi.new 'struct event_request', event_filter.for_kernel(event, run:own_threads())
    request.name, request.filter = event.name, filter
    request.attr.type, request.attr.config = event.request.attr.type, event.request.attr.config
    request.counted, request.class = 2, run.events:new_class(event.name, request)
    if C.session_add_event(run.session, request, err) < 0 then return end
    self._of[event], self._sums[i] = i - 1, 0
  end
  return self
end

--- Reads the counters.
local function read(self)
  local got = ffi.new 'struct counts'
  C.session_read_counts(self._run.session, got)
  for row = 0, got.nr_rows - 1 do
    for i = 1, #self._sums do
      self._sums[i] = self._sums[i] + got.values[row * got.nr_events + i - 1].value
    end
  end
  self._has_changed = self._has_changed or self._rows and self._rows ~= got.nr_rows
  self._rows = got.nr_rows
  return { unpack(self._sums) }
end

--- Notes what the counters say at a moment of the run.
---@param moment 'before_begin'|'after_begin'|'before_end'|'after_end' without the first one, all since the session's
--- start
function Witnesses:mark(moment) self._marks[moment] = read(self) end

--- Returns how many events there were at least and at most while programs took them. Call it when the session has
--- stopped.
---@param event Event
---@return Witnessed? nil: it was not counted, or CPUs came and went
function Witnesses:of(event)
  local at, marks = self._of[event], self._marks
  if not (at and marks.before_end) then return end
  if not marks.after_end then self:mark 'after_end' end
  if self._has_changed then return end
  local function count(moment) return marks[moment] and marks[moment][at + 1] or 0 end
  local before = event.route.is_captured and 0 or count 'before_begin' -- the session enables what is captured
  local unsure = IN_FLIGHT * self._rows
  return { count = count 'after_end' - before, least = math.max(count 'before_end' - count 'after_begin' - unsure, 0),
    most = count 'after_end' - before + unsure }
end

--- Returns how programs that took an event differ from perf's counter; nil: they do not.
---@param name string of the event
---@param n number that programs took, or missed and counted
---@param found Witnessed
---@return string?
function witnesses.difference(name, n, found)
  if n < found.least then
    return ('at least %d of %d %s are missing: perf counted them, but programs did not'):format(found.least - n,
      found.least, name)
  elseif n > found.most then
    return ("%d %s were counted by programs, which is %d more than perf counted: perf does not see them, or they came "
      .. 'twice'):format(n, name, n - found.most)
  end
end

return witnesses
