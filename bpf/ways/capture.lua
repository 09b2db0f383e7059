-- SPDX-License-Identifier: GPL-2.0-only
--- Captures: the events of a run that BPF programs write into rings of their own, in perf's format
--- (bpf/gen/capture.lua). What follows does not see the difference, but the traced tasks pay less.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local capture = require 'bpf.gen.capture'
local expr = require 'bindings.expr.compile'
local handler_terms = require 'bpf.ways.terms'
local probe = require 'bpf.gen.probe'
local program = require 'bpf.gen.program'
local route = require 'bpf.plan.route'

local C = ffi.C
local captures = {}

---@class Captures
---@field rings? Rings
---@field sizes table<Event, integer> bytes of the records of events of which all have the same
local Captures = {}
Captures.__index = Captures

---@param kernel InKernel
---@return Captures
function captures.new(kernel) return setmetatable({ _kernel = kernel, _programs = {}, sizes = {} }, Captures) end

--- Returns captures of all tasks in overwritten rings of their own.
---@param kernel InKernel
---@param pages integer of each ring
---@return Captures
function captures.recorder(kernel, pages)
  return setmetatable({ _kernel = kernel, _programs = {}, sizes = {}, _pages = pages }, Captures)
end

local ATTRIBUTES = { cpus = true, period = true, freq = true, push = true }

-- To read a user's stack faults on pages that are not there. perf does not report these faults while it does so, but
-- would while a program does.
local FAULTS = 'exceptions:page_fault_kernel'

captures.verb = 'take'
captures.name, captures.lacks = 'capture', {}

--- Returns why an event cannot be captured with its stack; nil if it can.
local function refuses_stack(facts, event)
  if event.is_call then return ('stacks of %s are those of the program'):format(event.name) end
  if event.has_stack_copy then return ('%s is recorded with a copy of its stack'):format(event.name) end
  for _, other in ipairs(facts.events) do
    if other.name == FAULTS then return ('to read the stacks of %s causes %s'):format(event.name, FAULTS) end
  end
  -- The kernel walks the two parts of a stack one after the other, in calls that cost more than perf's samples.
  if facts.run.capture == 'auto' and event.has_user_stack and not event.has_types
    and not event.is_walked then
    return ('%s is recorded with the stack of the program, which costs no less through BPF'):format(event.name)
  end
end

--- Returns why an event cannot be captured; nil if it can.
---@param facts Facts
---@param event EventFacts
---@param calls integer events of single system calls of the run: perf's handler runs for each call, too
---@param is_other? boolean if it is a wakeup: only of another task than the current one
---@param only_details? boolean only details show it, and they mark flags that are not known
---@return string?
function captures.refuses(facts, event, calls, is_other, only_details)
  local run, name = facts.run, event.name
  if not event.is_tracepoint or event.machine then return ('%s is not a tracepoint of this machine'):format(name) end
  if event.is_counted then return ('%s is only counted'):format(name) end
  local reason = event.has_stack and refuses_stack(facts, event)
  if reason then return reason end
  if event.has_program then return ('a BPF program writes the samples of %s anyway'):format(name) end
  if event.has_parts then return ('the samples of %s have parts that programs do not write'):format(name) end
  if event.is_rare then return ('not every %s is sampled'):format(name) end
  for _, attribute in ipairs(event.attrs) do
    if ATTRIBUTES[attribute] then return ('%s has the attribute %s='):format(name, attribute) end
  end
  if event.is_call and calls > capture.MAX_EVENTS then return 'there are too many events of system calls' end
  if run.needs.newest and run.capture == 'auto' and run.thread_rings then
    return '--overwrite keeps the newest events of each thread'
  end
  if not event.is_known then return ('programs do not know the arguments of %s'):format(name) end
  if event.is_exact or is_other and event.is_exact_other then return end
  local is_read = run.shows_flags
  if only_details then is_read = run.reads_flags end
  if is_read then return ('the common_flags of %s may be read, which BPF cannot tell'):format(name) end
end

--- Returns the rings, with room for some more events. Refuses if there cannot be any.
---@param events integer
---@return Rings
function Captures:open(events)
  local opt = self._kernel.run.opt
  self.rings = self.rings or capture.rings(self._pages or opt.mmap_pages, opt.watermark, self._pages or opt.overwrite)
  if self._kernel:has_foreign_pids() then
    asm.refuse("the kernel's thread ids are not those of this pid namespace")
  end
  if self.rings.events + events > capture.MAX_EVENTS then asm.refuse 'there are too many events' end
  return self.rings
end

--- Returns an id for the samples of an event, or refuses.
---@return integer64
function Captures:new_id() -- luacheck: no self
  if program.is_dry() then return 0 end
  local err = ffi.new 'struct error'
  local id = C.capture_new_id(err)
  if id == 0 then asm.refuse('%s', ffi.string(err.text)) end
  return id
end

--- Lets the session read the samples of an event from the rings. It is the next event there.
---@param event Event
---@param loaded Descriptor the program that writes them
---@param id integer64 in the samples
function Captures:read(event, loaded, id)
  local rings, captured = self.rings, event.request.captured
  captured.rings, captured.bell, captured.program = rings.map.fd, rings.bell.fd, loaded.fd
  captured.nr_cpus, captured.size, captured.bit, captured.id = rings.nr_cpus, rings.size, rings.events, id
  captured.overwrite = rings.overwrite and 1 or 0
  rings.events = rings.events + 1
  route.write(event.route, { is_captured = true, has_no_flags = not capture.is_exact(event.name) })
end

--- Loads and attaches the program of an event, and adds it to the event's request.
local function load(self, event, filters)
  local kernel, request = self._kernel, event.request
  local rings, id = self:open(1), self:new_id()
  local loaded = probe.load(kernel:spec(event, rings, filters, self._pages ~= nil), function(a, source, places)
    capture.write(a, source, places, {
      event = event.name, list = event.list, id = id, rings = rings, type = tonumber(request.attr.config),
      stack = request.callchain ~= 0 and { parts = request.callchain, max = request.attr.sample_max_stack,
        walker = self._kernel.walks:walker(request.callchain) } or nil,
    })
  end)
  local link = not program.is_dry() and probe.attach(loaded, kernel.calls) or nil
  self:read(event, loaded, id)
  self.sizes[event] = request.callchain == 0 and capture.RAW_AT + capture.raw_size(event.list) or nil
  route.write(event.route, { program = loaded.name })
  table.insert(self._programs, { loaded, link })
  return true
end

--- Returns the filters of an event that its program checks.
---@param event Event
---@param level string see Route
---@return Compiled[]
local function filters_of(self, event, level)
  local kernel = self._kernel
  local filters = kernel:filters(event, level == 'kernel')
  if level == 'guards' then
    local plan = kernel.only_plan[event]
    local text = handler_terms.filter(plan.handler, event, plan.code.conditions, plan.code.guards)
    filters[#filters + 1] = expr.compile(text, event.fields, { form = 'filter' })
      or asm.refuse('a program cannot check the conditions of the handler')
  end
  return filters
end

--- Captures an event. Returns why it cannot.
---@param event Event
---@param level string see Route
---@return string? reason
function Captures:add(event, level)
  return (select(2, asm.attempt(function() return load(self, event, filters_of(self, event, level)) end)))
end

--- Returns the figures of the bytes of all events together; nil: not all records have a size.
---@param run Run
---@return Figures?
function Captures:figures(run)
  local sum, bytes = ffi.new 'struct session_account', 0
  for _, event in ipairs(run.events.list) do -- also those of which the same rings have only outliers
    if not event.is_derived and event.request.captured.rings ~= 0 then
      if not self.sizes[event] then return end
      C.session_read_account(run.session, event.class, sum)
      bytes = bytes + tonumber(sum.read + sum.early + sum.rest) * self.sizes[event]
    end
  end
  -- Records that are lost were not written.
  return { name = 'bytes of captured events', way = 'capture', lost = 0, read = bytes, by = 'programs',
    fate = 'they were not read' }
end

--- Detaches the programs. Called when the session has ended the events.
function Captures:stop()
  for _, one in ipairs(self._programs) do
    if one[2] then one[2]:close() end
  end
end

return captures
