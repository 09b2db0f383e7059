-- SPDX-License-Identifier: GPL-2.0-only
--- Instance: one profiler in a run, with its options, its events and the result of its start(). A run has one instance
--- whose handlers are called, and one for each profiler that is an event source.
local attach = require 'bindings.select.attach'
local catalog = require 'bindings.select.catalog'
local contract = require 'bindings.options.contract'
local failure = require 'bindings.base.failure'
local needs = require 'bpf.plan.needs'
local public_event = require 'bindings.view.public_event'
local sample_filter = require 'bpf.run.sample_filter'
local sample_words = require 'bpf.run.sample_words'
local sampling = require 'bindings.view.sampling'
local session_api = require 'bindings.run.session_api'
local strings = require 'bpf.pointers.string_fields'
local user_strings = require 'bpf.run.user_strings'
local values = require 'bindings.options.values'
local views = require 'bindings.view.views'

---@class Instance
---@field run table a Run, or the explainer's stand-in: session, services, events, out, words
---@field name string the profiler's name
---@field script scripts.Script
---@field opt table its own options
---@field set table its event set (bindings/select/events.lua)
---@field parent? Instance the profiler that uses it as a source
---@field wants SessionWants
---@field settled? boolean start() has returned, so wants are final
---@field describe? fun(ev: any): string|userdata describes one of its events for printing
---@field later? table<string, fun(): any> options whose values are found when the script reads them
---@field selects? boolean the user has selected events with -e
---@field lacking? table<string|integer, boolean|string> the optional tracepoints that the recording lacks, and a line
--- about each
---@field left? integer number of events after which a source ends
---@field is_gate? boolean it is a source and decides which of its events are passed on
---@field checked? contract.Handlers of a source
---@field opened? Event[] of a source: its events and those of its own sources
---@field attrs? table[] of a source: their attributes before it became one
---@field counts? Counts of a source
---@field clock? Event by which it counts others
---@field id_changes? Event at which threads get other ids: the options about events do not mean it
---@field by_class? HandlersByClass of a gate
---@field accepted? Offer of a gate whose condition programs evaluate
local Instance = {}
Instance.__index = Instance

local instance = {}

---@param run table
---@param script scripts.Script
---@param opt table
---@param parent? Instance
---@return Instance
function instance.new(run, script, opt, parent)
  local self = setmetatable({
    run = run, name = script.name, script = script, opt = opt, parent = parent, wants = {},
  }, Instance)
  self.set = run.events:of(script, self)
  return self
end

--- Returns the names of the strings behind pointers that the profiler asks for, and those that use it as a source. Only
--- called if an event may have such strings: the search takes longer than the rest of a start.
---@return table<string, boolean>
function Instance:wanted_strings()
  if not self._strings then
    self._strings = setmetatable({}, { __index = self.parent and self.parent:wanted_strings() })
    user_strings.want(self._strings, self.script.profiler.start, self.opt)
  end
  return self._strings
end

--- Returns whether the profiler, or one that uses it as a source, reads the control groups of tasks.
---@return boolean
function Instance:reads_groups()
  if self._reads_groups == nil then
    self._reads_groups = self.parent and self.parent:reads_groups() or sample_words.reads_groups(self.script, self.opt)
  end
  return self._reads_groups
end

--- Returns the profiler's own events, without those of its sources.
---@return Event[]
function Instance:events()
  local list = {}
  for _, event in ipairs(self.set.list) do
    if event.owner == self then list[#list + 1] = event end
  end
  return list
end

--- Calls a function while the events of a source have the attributes, such as a key, that they have in its profiler.
---@param call fun(...): any, any
---@return any, any
function Instance:on_its_own(call, ...)
  local attrs = {}
  for i, event in ipairs(self.opened) do attrs[i] = event:swap_attrs(self.attrs[i]) end
  local ok, result, more = pcall(call, ...)
  for i, event in ipairs(self.opened) do event:swap_attrs(attrs[i]) end
  if not ok then error(result, 0) end
  return result, more
end

--- Returns whether an option of type event has its default value.
local function is_default(option, given)
  if type(given) ~= 'table' then return given == option.default end
  for i, text in ipairs(given) do
    if type(option.default) ~= 'table' or text ~= option.default[i] then return false end
  end
  return true
end

--- Returns whether the profiler can do without a tracepoint that the recording lacks. check() says what that means.
---@param name string
---@return boolean
function Instance:lacks(name)
  local lack = self.run.is_recorded and (self.script.profiler.optional or {})[name]
  if not lack or self.set.catalog:has(name) then return false end
  self.lacking = self.lacking or {}
  if not self.lacking[name] then table.insert(self.lacking, ('the recording has no %s: %s'):format(name, lack)) end
  self.lacking[name] = true
  return true
end

--- Says what the recording lacks, once it is known that the rest will do.
local function say_lacking(self)
  for _, line in ipairs(self.lacking or {}) do self.run.services.warn(('%s: %s'):format(self.name, line)) end
end

--- Removes the handlers of tracepoints that the recording lacks, if there are handlers of others.
local function drop_lacking(self, handlers)
  if type(handlers) ~= 'table' or not self.script.profiler.optional then return end
  local lacking, has_others = {}, false
  for key in pairs(handlers) do
    local is_event = type(key) ~= 'string' -- start() has requested it
    local name = not is_event and key:match '^([%w_]+:[%w_]+)%f[/%z]'
    if name and not self.set.catalog:has(name) then
      lacking[#lacking + 1] = key
    else
      has_others = has_others or is_event or name
    end
  end
  table.sort(lacking)
  for _, key in ipairs(has_others and lacking or {}) do
    if self:lacks(key:match '^[^/]*') then handlers[key] = nil end
  end
end

--- Opens the events named by options. The value of such an option becomes a list of groups, one per occurrence on the
--- command line. Each group is a list of events. Without -e it is a group of all events of a recording, if the script
--- asks for it.
function Instance:open_event_options()
  local opt = self.opt
  for _, option in ipairs(self.script.spec.list) do
    local given = option.type == 'event' and opt[option.name]
    if given then
      self.set.by_script = self.script.is_shipped and is_default(option, given)
      local groups = {}
      self.selects = self.selects or option.name == 'event' and not is_default(option, given)
      local lacks = is_default(option, given) and function(name) return self:lacks(name) end or nil
      for i, text in ipairs(type(given) == 'table' and given or { given }) do
        groups[i] = self.set:select(text, nil, lacks)
      end
      if option.name == 'event' and #groups == 0 and self.run.is_recorded and not self.parent then
        self.later = { event = function() return public_event.of { self.set:add_recorded() } end }
      end
      opt[option.name] = public_event.of(groups)
    end
  end
  self.set.by_script = self.script.is_shipped
end

--- Returns the filter for all of the profiler's events (--filter); nil if the profiler gives --filter its own meaning.
---@return string?
function Instance:common_filter()
  local own = self.script.profiler.options
  return not (own and own.filter and own.filter.own) and self.opt.filter or nil
end

--- Returns why the profiler cannot do in this run what its options ask for; nil if it can.
local function refusal_of(self)
  local spec, is_recorded = self.script.spec, self.run.is_recorded
  local names_recording = false
  for _, option in ipairs(spec.positional) do names_recording = names_recording or option.name == 'input' end
  if is_recorded and spec.dropped.input and not names_recording then
    return 'recordings are not supported: it measures the running kernel'
  end
  local live = is_recorded and needs.given(spec.list, self.opt, 'live')
  if live then return live .. ' needs live events, and does not work with a recording' end
  local own = self.parent and needs.given(spec.list, self.opt, 'own_run')
  if own then return own .. ' is not supported in a source of events' end
end

--- Calls the profiler's start().
---@return any handlers, any refusal
function Instance:start()
  local wrong = refusal_of(self)
  if wrong then return nil, wrong end
  local opt, read = values.new(self.opt, self.script.spec, self.later)
  local handlers, refusal = self.script.profiler.start(opt, self.run.out, session_api.new(self))
  if handlers and self.selects and not read.event then
    failure.usage('%s: it has no use for -e: its script never reads opt.event', self.name)
  end
  return handlers, refusal
end

local NOT_RECORDED = 'the recording does not contain it; a script that uses it records it with --record'

--- Checks that each field read by a handler exists in at least one of its events.
local function check_fields(entries, set)
  local by_handler, order = {}, {}
  for _, entry in ipairs(entries) do
    local of = by_handler[entry.handler]
    if not of then
      of = { handler = entry.handler }
      by_handler[entry.handler] = of
      order[#order + 1] = of
    end
    for _, event in ipairs(entry.found) do
      of[#of + 1] = {
        name = event.name, fields = event.view.names, texts = views.texts(event.fields), strings = event.view.strings,
        others = event.system == 'syscalls' and strings.names(set.catalog, event.name) or nil,
        no_strings = event.tracepoint and set.is_recording and event.system == 'syscalls' and NOT_RECORDED or nil,
      }
    end
  end
  for _, of in ipairs(order) do
    local message = contract.check_fields(of.handler, of, views.METHODS)
    if message then failure.raise('%s', message) end
  end
end

--- Returns the events of a handler. Mistakes in its key are reported at its line.
local function find(set, entry)
  if entry.event then return { public_event.one(entry.event, 'the key of a handler') } end
  local info = debug.getinfo(entry.handler, 'S')
  local script = failure.script_of(info.source)
  local place = script and ('%s:%d: '):format(script, info.linedefined)
  local ok, found = pcall(set.select, set, entry.selector)
  if not ok and place and failure.is(found) then found.message = place .. found.message:gsub('^profscript: ', '') end
  if not ok then error(found, 0) end
  for _, event in ipairs(found) do event.place = place end
  return found
end

--- Checks the handlers that start() returned, and opens the events that they name.
---@param handlers any
---@return contract.Handlers checked each of its events has `found`, a list of Events
function Instance:check(handlers)
  local set = self.set
  drop_lacking(self, handlers)
  local checked, message = contract.check(self.script.profiler.start, handlers, {
    has = function(name)
      local has = set.catalog:has(name)
      -- find() raises the error
      if not has and (self.run.is_recorded or set.by_script or not set.catalog:formats()) then
        set:find(name:match '^(.-):(.*)$')
      end
      return has
    end,
    names = function() return set.catalog:names() end,
    words = catalog.words(set:profilers()),
  })
  if not checked then failure.raise('%s', message) end
  for _, entry in ipairs(checked.events) do
    entry.found = find(set, entry)
  end
  check_fields(checked.events, set)
  self.describe = checked.life.describe
  if self.describe then check_fields({ { handler = self.describe, found = self:events() } }, set) end
  self.settled = true
  say_lacking(self)
  return checked
end

--- Applies the profiler's options to its events: exclusions, stacks, sample filters.
function Instance:mark_events()
  local list = self:events()
  attach.restrict(self.name, self.opt, list, self.run.services.warn, self.script.profiler.options)
  sampling.check_options(self.name, self.opt, list)
  attach.stacks(self.name, self.opt, list, self.wants.stacks, self.wants.stack_part)
  self._sample_filter = sample_filter.apply(self.name, self.opt, list, self.script.profiler.options)
  if self.wants.only_threads and self.script.profiler.everywhere then self.run.in_kernel:want_only_threads(list) end
end

return instance
