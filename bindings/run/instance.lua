-- SPDX-License-Identifier: GPL-2.0-only
--- One profiler within a run: its options, the events that it has opened, and what its start()
--- returned. A run has one whose handlers are called, and one for each profiler that is a source of
--- events for it.
local attach = require 'bindings.select.attach'
local contract = require 'bindings.options.contract'
local failure = require 'bindings.base.failure'
local public_event = require 'bindings.view.public_event'
local sample_filter = require 'bindings.bpf.sample_filter'
local sampling = require 'bindings.view.sampling'
local session_api = require 'bindings.run.session_api'
local task_filter = require 'bindings.bpf.task_filter'
local values = require 'bindings.options.values'
local views = require 'bindings.view.views'

---@class Instance
---@field run table the driver's, or what explains an event: session, services, events, out, words
---@field name string of the profiler
---@field script scripts.Script
---@field opt table its own options
---@field set table where it names events, see bindings/select/events.lua
---@field parent? Instance whose source it is
---@field wants SessionWants
---@field settled? boolean what start() has asked for is known
---@field describe? fun(ev: any): string how it prints one of its events
---@field left? integer a source ends after so many more events
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

--- The events that are the profiler's, not those of its sources.
---@return Event[]
function Instance:events()
  local list = {}
  for _, event in ipairs(self.set.list) do
    if event.owner == self then list[#list + 1] = event end
  end
  return list
end

--- Opens the events of the options that name some. The option's value becomes a list of groups, one
--- for each time it was given, each a list of events.
function Instance:open_event_options()
  local opt = self.opt
  for _, option in ipairs(self.script.spec.list) do
    local given = option.type == 'event' and opt[option.name]
    if given then
      local groups = {}
      for i, text in ipairs(type(given) == 'table' and given or { given }) do
        groups[i] = self.set:select(text, i)
      end
      if option.name == 'event' and #groups == 0 and opt.input and not self.parent then
        groups[1] = self.set:add_recorded()
      end
      opt[option.name] = public_event.of(groups)
    end
  end
end

--- The filter that all of the profiler's events have, unless its --filter means something else.
---@return string?
function Instance:common_filter()
  local own = self.script.profiler.options
  return not (own and own.filter and own.filter.own) and self.opt.filter or nil
end

--- Calls the profiler's start().
---@return any handlers, any refusal
function Instance:start()
  return self.script.profiler.start(values.new(self.opt, self.script.spec), self.run.out, session_api.new(self))
end

--- Fields that a handler reads must be those of one of its events at least.
local function check_fields(entries)
  local by_handler, order = {}, {}
  for _, entry in ipairs(entries) do
    local of = by_handler[entry.handler]
    if not of then
      of = { handler = entry.handler }
      by_handler[entry.handler] = of
      order[#order + 1] = of
    end
    for _, event in ipairs(entry.found) do
      of[#of + 1] = { name = event.name, fields = event.view.names }
    end
  end
  for _, of in ipairs(order) do
    local message = contract.check_fields(of.handler, of, views.METHODS)
    if message then failure.raise('%s', message) end
  end
end

--- Checks the handlers that start() returned, and opens the events that they name.
---@param handlers any
---@return contract.Handlers checked each of its events has `found`, a list of Events
function Instance:check(handlers)
  local set = self.set
  local checked, message = contract.check(self.script.profiler.start, handlers, {
    has = function(name)
      if not set:has(name) and self.opt.input then set:find(name:match '^(.-):(.*)$') end -- which says so
      return set:has(name)
    end,
    names = function() return set:names() end,
    words = set:words(),
  })
  if not checked then failure.raise('%s', message) end
  for _, entry in ipairs(checked.events) do
    entry.found = entry.event and { public_event.one(entry.event, 'the key of a handler') }
      or set:select(entry.selector, 0)
  end
  check_fields(checked.events)
  self.describe = checked.life.describe
  if self.describe then check_fields { { handler = self.describe, found = self:events() } } end
  self.settled = true
  return checked
end

--- Marks what the profiler's events leave out, and what they record of stacks, by its options.
function Instance:mark_events()
  local list = self:events()
  attach.restrict(self.name, self.opt, list)
  sampling.check_options(self.name, self.opt, list)
  attach.stacks(self.name, self.opt, list, self.wants.stacks)
  sample_filter.apply(self.name, self.opt, list, self.script.profiler.options)
  if self.wants.only_threads then
    task_filter.apply(self.run, list, attach.inherits(self.run.opt, self.run.workload))
  end
end

return instance
