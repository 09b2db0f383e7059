-- SPDX-License-Identifier: GPL-2.0-only
--- Version: a script that takes part in a run: what its start() returned, and the passes that send batches to it. With
--- --watch, a run has several versions of its script, one after the other (bindings/run/reload.lua).
local bit = require 'bit'
local dispatch = require 'bindings.view.dispatch'
local event_filter = require 'bindings.select.event_filter'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local gates = require 'bpf.run.gates'
local instance = require 'bindings.run.instance'
local passes = require 'bindings.run.passes'
local printer = require 'bindings.print.printer'
local handlers_by_class = require 'bindings.view.handlers_by_class'
local sources = require 'bindings.run.sources'

local C = ffi.C
local version = {}

--- Groups the handlers by class, and requests the records that handlers and consumers need from the session.
---@param run Run
---@param checked contract.Handlers
---@param prints_events boolean each event is printed before its handlers see it
---@return ClassHandlers[]
local function group(run, checked, prints_events)
  local all = handlers_by_class.new()
  if prints_events then
    local function print_event(ev) run.out:print_event(ev) end
    for _, event in ipairs(run.events.list) do all:add(event, print_event) end
  end
  all:add_events(checked, run.in_kernel.receivers)
  for _, counted in ipairs(run.counts and run.counts.handlers or {}) do
    for _, handler in ipairs(counted.handlers) do all:add(counted, handler) end
  end
  for _, event in ipairs(run.events.list) do
    local exec = event.attrs.exec
    if exec and event.request.counted == 1 and not run.is_recorded then
      run.out:warn(('%s: exec= has no effect on %s, which is only counted'):format(run.name, event.name))
    elseif exec then
      all:add(event, run.services.expression(event, exec, run.opt.allow_exec).value)
    end
  end
  all:add_tasks(run, checked)
  return all.list
end

--- Splits the filters of all events into a kernel part and a user part.
---@param run Run
---@return Branch[] branches the user part
local function split_filters(run)
  local filters = {}
  for _, event in ipairs(run.events.list) do
    local owner = event.owner
    local common = owner.clock ~= event and not event:is_aside() and owner:common_filter() -- they lack its fields
    if common then event:add_filter(common) end
    local in_user_space = run.is_recorded or event.machine or event.request.bpf_array ~= 0
    local arch = ffi.string(C.session_arch(run.session, event.request.member))
    local split = event_filter.split(event, in_user_space, arch)
    event:split_filter { kernel = split.kernel, user = split.user_text }
    if event.machine and event.request.counted == 1 then
      failure.usage('%s: %s only counts events, which pull= cannot do; use --input %s', event.name, run.name,
        event.machine.address)
    end
    if split.user and event.request.counted == 1 and not run.is_recorded then
      failure.usage("%s is only counted, so the kernel must evaluate its filter, but it cannot evaluate '%s'",
        event.name, split.user_text)
    end
    if event.gate and event.request.counted == 1 then
      failure.usage('%s is only counted, so %s cannot decide which of its events to pass on', event.name, event.gate)
    end
    if split.user then
      filters[#filters + 1] = {
        class = event.class,
        view = event.view,
        keep = expr.load(split.user, run.services.expression_env),
      }
    end
  end
  return dispatch.filters(filters)
end

--- Returns a pass that ends the run after N events (-N); nil without -N.
---@param run Run
---@param by_script? boolean the script itself ends the run
---@return Pass? pass
local function limit(run, by_script)
  local left = not (run.counts or by_script) and run.left
  return left and function(list, all)
    local n, samples = dispatch.limit(list, all, left[1])
    left[1] = left[1] - samples
    if left[1] == 0 then
      run:stop(list[n - 1].time)
      dispatch.drop(list, n, all)
    end
    return n
  end or nil
end

--- Returns the pass that calls the script's handlers. Without handlers it only processes losses, and only in batches
--- that contain any.
local function handlers_pass(run, handlers)
  local loop = dispatch.loop('dispatch', dispatch.handlers(handlers, function(e) run.loss:note(e) end), run.stopped)
  if #handlers > 0 then
    return function(list, n)
      local taken = loop(list, n)
      if taken then dispatch.drop(list, taken, n) end
      return taken
    end
  end
  return function(list, n, flags)
    if bit.band(flags, C.BATCH_LOST) ~= 0 then loop(list, n) end
  end
end

---@class Version
---@field run Run
---@field script scripts.Script
---@field profiler Instance
---@field checked contract.Handlers
---@field life table<string, function> the script's handlers without an event: interval, stop...
---@field pass? Pass all passes, once it is open
local Version = {}
Version.__index = Version

--- Starts the profiler and its sources, and checks their events and handlers.
---@param run Run
---@param script scripts.Script
---@return Version
function version.start(run, script)
  local profiler = instance.new(run, script, run.opt)
  profiler:open_event_options()
  local handlers, refusal = profiler:start()
  if handlers == nil and refusal then failure.usage('%s: %s', script.name, tostring(refusal)) end
  local checked = profiler:check(handlers)
  if #run.events.list == 0 and #run.programs == 0 then
    failure.usage('%s: no events; select some with -e, such as -e sched:sched_switch', script.name)
  end
  run.events.sources:apply_options(run.opt)
  profiler:mark_events()
  return setmetatable({
    run = run, script = script, profiler = profiler, checked = checked, life = checked.life, _passes = passes.new(),
  }, Version)
end

--- Splits the filters between the kernel and profscript.
function Version:split_filters() self._passes:add('filter', 'filters', split_filters(self.run)) end

--- Adds the passes that exist before the session starts.
---@param target? Branch[] that drop events of other threads
---@param limits Branch[] that end sources
function Version:add_passes(target, limits)
  local all, run, wants = self._passes, self.run, self.profiler.wants
  all:add('target', 'target_filter', target)
  gates.prepare(run)
  all:add('limit', 'limits', limits)
  all:add('limit', '-N', limit(run, wants.own_exit_n))
  all:add('handle', 'dispatch', handlers_pass(run, group(run, self.checked, run.opt.verbose > 1
    and not wants.prints_events)))
end

--- Returns the branches that end sources after their -N.
---@return Branch[]
function Version:limits()
  local run = self.run
  return sources.limits(run.session, run.events.list, function() run:stop() end)
end

--- Makes the version ready for events, once the session has started.
function Version:open()
  local run, all = self.run, self._passes
  for _, follower in ipairs(run.followers) do
    if follower.add_passes then follower:add_passes(all, run) end
  end
  gates.open(run, all)
  for _, consumer in ipairs(self.checked.consumers) do
    if consumer.open then consumer:open(run) end
    all:add_consumer(consumer)
  end
  self.pass = all:compile()
  self._printer = printer.new(run)
  self:take_over()
end

--- Makes this the version whose handlers are called.
function Version:take_over()
  self.run:call('again', self.run)
  self.run.loss:set_handler(self.life.lost)
  self.run.out:print_events_with(self._printer)
end

--- Passes the threads that the user has named to the script and its sources.
---@param tids integer[]
function Version:begin(tids)
  self:call('targets', tids)
  gates.begin(self.run, tids)
end

--- Calls a handler without an event if the script has one.
function Version:call(name, ...)
  local handler = self.life[name]
  if handler then handler(...) end
end

--- Lets the consumers do what they do between batches, and calls what waits for files. Returns whether a consumer ends
--- the run.
---@return boolean
function Version:poll()
  local ends = false
  for _, consumer in ipairs(self.checked.consumers) do
    if consumer.poll and consumer:poll() then ends = true end
  end
  for _, one in ipairs(self.run.file_calls) do
    if one.files:changed() then one.call() end
  end
  return ends
end

--- Lets another version take its place.
function Version:close()
  for _, consumer in ipairs(self.checked.consumers) do
    if consumer.close then consumer:close() end
  end
  for _, one in ipairs(self.run.file_calls) do one.files:close() end
end

return version
