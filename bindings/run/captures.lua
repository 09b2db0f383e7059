-- SPDX-License-Identifier: GPL-2.0-only
--- Captures: the events of a run that BPF programs write into rings of their own, in perf's format
--- (bpf/gen/capture.lua). What follows does not see the difference, but the traced tasks pay less.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local attach = require 'bindings.select.attach'
local capture = require 'bpf.gen.capture'
local expr = require 'bindings.expr.compile'
local handler_terms = require 'bindings.run.handler_terms'
local mentions = require 'bindings.options.mentions'
local probe = require 'bpf.gen.probe'
local system_calls = require 'bpf.gen.system_calls'

local C = ffi.C
local captures = {}

---@class Captures
---@field rings? Rings
---@field shows_flags? boolean see shows_flags()
---@field reads_flags? boolean the same for events that only details show
local Captures = {}
Captures.__index = Captures

---@param kernel InKernel
---@return Captures
function captures.new(kernel) return setmetatable({ _kernel = kernel, _programs = {} }, Captures) end

--- Returns captures of all tasks in overwritten rings of their own.
---@param kernel InKernel
---@param pages integer of each ring
---@return Captures
function captures.recorder(kernel, pages)
  -- Nobody knows yet which fields of the kept events will be read.
  return setmetatable({ _kernel = kernel, _programs = {}, _pages = pages, shows_flags = true }, Captures)
end

local ATTRIBUTES = { 'cpus', 'period', 'freq', 'push' }

-- To read a user's stack faults on pages that are not there. perf does not report these faults while it does so, but
-- would while a program does.
local FAULTS = 'exceptions:page_fault_kernel'

-- What a script says that reads common_flags: by name, by printing events as text, or by listing fields.
local READERS = { print_event = true, fields = true }

local function is_common(text) return text:find('common_flags', 1, true) or text:find('common_preempt', 1, true) end

--- Returns whether somebody may look at common_flags.
---@param run Run
---@param checked contract.Handlers
---@param only_details? boolean at an event that only details show, and they mark flags that are not known
---@return boolean
local function shows_flags(run, checked, only_details)
  -- The next version of a script may look at them.
  if run.opt.watch or run.opt.verbose > 1 or #run.events.sources.list > 0 then return true end
  if mentions.option(run.opt, function(text) return is_common(text) ~= nil end) then return true end
  for _, event in ipairs(run.events.list) do
    if is_common(event.filter or '') or mentions.option(event.attrs, is_common) then return true end
  end
  if only_details then return false end
  local prints = run.opt.format == 'text'
  local roots = { run.profiler.start, checked.life, of_host = checked.consumers }
  local profilers = { checked }
  for _, source in ipairs(run.events.sources.list) do
    if source.is_gate then profilers[#profilers + 1] = source.checked end
  end
  for _, one in ipairs(profilers) do
    for _, entry in ipairs(one.events) do roots[#roots + 1] = entry.handler end
  end
  return mentions.any(roots, function(text, is_code)
    return is_code and READERS[text] and (prints or text ~= 'print_event') or is_common(text) ~= nil
  end)
end

--- Returns why an event cannot be captured with its stack; nil if it can.
---@param run Run
---@param event Event
---@return string?
local function refuses_stack(run, event)
  local request = event.request
  if system_calls.parts(event.name) then return ('stacks of %s are those of the program'):format(event.name) end
  if request.attr.sample_stack_user > 0 then return ('%s is recorded with a copy of its stack'):format(event.name) end
  for _, other in ipairs(run.events.list) do
    if other.name == FAULTS then return ('to read the stacks of %s causes %s'):format(event.name, FAULTS) end
  end
  -- The kernel walks the two parts of a stack one after the other, in calls that cost more than perf's samples.
  if run.opt.capture == 'auto' and request.callchain >= C.STACK_USER then
    return ('%s is recorded with the stack of the program, which costs no less through BPF'):format(event.name)
  end
end

--- Returns whether some of the run's system calls would stay with perf, whose handler runs for each call, too.
---@param run Run
---@return boolean
local function has_many_calls(run)
  local n = 0
  for _, event in ipairs(run.events:shown()) do
    if system_calls.parts(event.name) and not event.taken then n = n + 1 end
  end
  return n > capture.MAX_EVENTS
end

--- Returns why an event cannot be captured; nil if it can.
---@param event Event
---@param checked contract.Handlers
---@param is_other? boolean if it is a wakeup: only of another task than the current one
---@param only_details? boolean see shows_flags()
---@return string?
function Captures:refuses(event, checked, is_other, only_details)
  local request = event.request
  if not event.tracepoint or event.machine then return ('%s is not a tracepoint of this machine'):format(event.name) end
  if request.counted == 1 then return ('%s is only counted'):format(event.name) end
  if request.callchain ~= 0 then
    local reason = refuses_stack(self._kernel.run, event)
    if reason then return reason end
  end
  if request.bpf_array ~= 0 then return ('a BPF program writes the samples of %s anyway'):format(event.name) end
  if request.reads ~= 0 or request.everywhere ~= 0 or request.sample ~= 0 then
    return ('the samples of %s have parts that programs do not write'):format(event.name)
  end
  if request.attr.freq ~= 0 or request.attr.sample_period > 1 then
    return ('not every %s is sampled'):format(event.name)
  end
  for _, name in ipairs(ATTRIBUTES) do
    if event.attrs[name] then return ('%s has the attribute %s='):format(event.name, name) end
  end
  local run = self._kernel.run
  local opt = run.opt
  if system_calls.parts(event.name) and has_many_calls(run) then return 'there are too many events of system calls' end
  if opt.overwrite and opt.capture == 'auto' and attach.has_thread_rings(opt, run.workload, run.everywhere) then
    return '--overwrite keeps the newest events of each thread'
  end
  if not capture.is_known(event.name) then return ('programs do not know the arguments of %s'):format(event.name) end
  if capture.is_exact(event.name, is_other) then return end
  local name = only_details and 'reads_flags' or 'shows_flags'
  if self[name] == nil then self[name] = shows_flags(run, checked, only_details) end
  if self[name] then return ('the common_flags of %s may be read, which BPF cannot tell'):format(event.name) end
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
  event.captured, event.has_no_flags = true, not capture.is_exact(event.name)
end

--- Loads and attaches the program of an event, and adds it to the event's request.
local function load(self, event, filters)
  local kernel, request = self._kernel, event.request
  local rings, id = self:open(1), self:new_id()
  local loaded = probe.load(kernel:spec(event, rings, filters, self._pages ~= nil), function(a, source, places)
    capture.write(a, source, places, {
      event = event.name, list = event.list, id = id, rings = rings, type = tonumber(request.attr.config),
      stack = request.callchain ~= 0 and { parts = request.callchain, max = request.attr.sample_max_stack } or nil,
    })
  end)
  local link = not kernel.run.opt.dry_run and probe.attach(loaded, kernel.calls) or nil
  self:read(event, loaded, id)
  table.insert(self._programs, { loaded, link })
  return true
end

--- Returns the conditions without which the only handler of an event does nothing, compiled; nil if there are none, or
--- somebody else sees the events.
---@param run Run
---@param event Event
---@param checked contract.Handlers
---@return Compiled?
local function guard(run, event, checked)
  local plan = event.only_plan
  if not plan or not plan.code or plan.code.guards == 0 or event.owner.parent or run.opt.verbose > 1 then return end
  if run:needs 'each_event' or run:needs 'event_counts' then return end
  for name in pairs(event.attrs) do
    if name ~= 'alias' then return end
  end
  for _, consumer in ipairs(checked.consumers) do
    if consumer.feed or consumer.prepare then return end
  end
  return (asm.attempt(function()
    local text = handler_terms.filter(plan.handler, event, plan.code.conditions, plan.code.guards)
    return expr.compile(text, event.fields, { form = 'filter' })
  end))
end

--- Captures an event. Returns why it cannot.
---@param event Event
---@param checked contract.Handlers
---@return string? reason
function Captures:add(event, checked)
  local reason = self:refuses(event, checked)
  if reason then return reason end
  local kernel = self._kernel
  local conditions = guard(kernel.run, event, checked)
  if conditions then
    local loaded = asm.attempt(function()
      local filters = kernel:filters(event)
      filters[#filters + 1] = conditions
      return load(self, event, filters)
    end)
    if loaded then
      event.only_plan.guarded, event.is_filtered = true, true
      return
    end
  end
  local loaded, why = asm.attempt(function() return load(self, event, kernel:filters(event)) end)
  event.is_filtered = loaded ~= nil
  if why and event.user_filter then -- which profscript evaluates in any case
    why = select(2, asm.attempt(function() return load(self, event, kernel:filters(event, true)) end))
  end
  return why
end

--- Returns whether an event is one of those that programs can capture.
---@param event Event
---@return boolean
function captures.is_known(event) return event.tracepoint ~= nil and capture.is_known(event.name) end

--- Detaches the programs. Called when the session has ended the events.
function Captures:stop()
  for _, one in ipairs(self._programs) do
    if one[2] then one[2]:close() end
  end
end

return captures
