-- SPDX-License-Identifier: GPL-2.0-only
--- An event that is asked for, as scripts see it: the key of a handler, what an option of type event holds.
--- The table of the host (bindings/select/events.lua) stays behind it.
local nearest = require 'bindings.base.nearest'
local views = require 'bindings.view.views'

local public_event = {}

--- A field of an event.
---@class EventField
---@field name string
---@field type string as the format spells it
---@field kind string 'signed', 'string', 'array of 6, 8 bytes each'...
---@field offset integer
---@field size integer bytes
---@field count integer elements of an array

--- What the user or a script has asked for: `[event] = function(ev) ... end` is its handler. It can be read only;
--- event:set() changes it.
---@class Event
---@field name string 'sched:sched_switch', 'cpu-clock'
---@field alias string the attribute alias=, else the name without its system
---@field class integer a number that no other event of the run has
---@field attrs table<string, string|number|boolean> attributes by name; true: given without a value
---@field given { name: string, value?: string|number }[] the attributes in their order, with those that are given
--- more than once
---@field fields table<string, EventField> by name
---@field filter? string
---@field kind? string of perf's own events: 'software', 'hardware', 'hw-cache', 'raw', 'pmu' or 'breakpoint'
---@field freq? number samples per second
---@field owner { name: string } the profiler that has asked for it
local Event = {}

local READABLE = {
  name = true, alias = true, class = true, given = true, filter = true, kind = true, freq = true,
  is_task_event = true,
}

local real_of = setmetatable({}, { __mode = 'k' })
local public_of = setmetatable({}, { __mode = 'k' })

local function refuse_writing() error('events are read only: event:set() changes what is asked for', 2) end

--- Text of a C expression, such as a filter.
local function check_text(name, value)
  if type(value) ~= 'string' then error(('event:set: %s is a %s, not a string'):format(name, type(value)), 3) end
end

local SETTINGS = {
  filter = function(event, value)
    check_text('filter', value)
    event.filter = value ~= '' and value or nil
  end,
  key = function(event, value)
    check_text('key', value)
    event.attrs.key = value
  end,
  stack = function(event, value)
    if type(value) ~= 'boolean' then error(('event:set: stack is a %s, not a boolean'):format(type(value)), 3) end
    event.attrs.stack = value or nil
  end,
}

--- Changes what is asked for. Only in start().
---@param settings { filter?: string, key?: string, stack?: boolean } filter: replaces the filter, '' removes it;
--- key: replaces the attribute key=; stack: whether samples have stacks
function Event:set(settings)
  local event = real_of[self]
  if not event then error('event:set is a method of events: call it with a colon', 2) end
  if type(settings) ~= 'table' then error(('event:set takes a table, not a %s'):format(type(settings)), 2) end
  if event.owner and event.owner.settled then error('event:set is for start(): the run has begun', 2) end
  for name, value in pairs(settings) do
    local set = SETTINGS[name]
    if not set then
      error(("event:set: unknown setting '%s'%s"):format(tostring(name),
        nearest.hint(tostring(name), nearest.keys(SETTINGS))), 2)
    end
    set(event, value)
  end
end

--- What a script gets of tables behind an event.
local MADE = {
  attrs = function(event)
    return setmetatable({}, { __index = function(_, name) return event.attrs[name] end, __newindex = refuse_writing })
  end,
  fields = function(event)
    local fields = {}
    for name, field in pairs(event.fields) do
      fields[name] = {
        name = name, type = field.type, kind = views.kind(field), offset = field.offset, size = field.size,
        count = field.count,
      }
    end
    return fields
  end,
  owner = function(event) return { name = event.owner and event.owner.name } end,
}

local names = nearest.keys(READABLE)
for _, name in ipairs { 'attrs', 'fields', 'owner', 'set' } do names[#names + 1] = name end

local Public = {
  __index = function(self, name)
    if READABLE[name] then return real_of[self][name] end
    if name == 'set' then return Event.set end
    if not MADE[name] then
      error(("events have no '%s'%s"):format(tostring(name), nearest.hint(tostring(name), names)), 2)
    end
    local made = MADE[name](real_of[self])
    rawset(self, name, made)
    return made
  end,
  __newindex = refuse_writing,
  __tostring = function(self) return 'event ' .. real_of[self].name end,
}

--- What scripts see of an event, or of a list of events or lists.
---@generic T
---@param event T
---@return T
function public_event.of(event)
  if type(event) ~= 'table' or real_of[event] then return event end
  if not event.class then
    local list = {}
    for i, one in ipairs(event) do list[i] = public_event.of(one) end
    return list
  end
  if not public_of[event] then
    local public = setmetatable({}, Public)
    public_of[event], real_of[public] = public, event
  end
  return public_of[event]
end

--- The event that a script has given, or the list of events.
---@param event any
---@return any
function public_event.real(event)
  if type(event) ~= 'table' then return event end
  if real_of[event] then return real_of[event] end
  if public_of[event] then return event end
  local list = {}
  for i, one in ipairs(event) do list[i] = public_event.real(one) end
  return list
end

--- The one event that a script has given. The error is at the line of who has called the caller.
---@param event any
---@param what string that wants it: "session.expression"
---@return table
function public_event.one(event, what)
  local real = type(event) == 'table' and (real_of[event] or public_of[event] and event)
  if not real then
    error(('%s takes an event, such as session.event() gives, not a %s'):format(what, type(event)), 3)
  end
  return real
end

return public_event
