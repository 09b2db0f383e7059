-- SPDX-License-Identifier: GPL-2.0-only
--- A requested event. Only this module writes its fields. The selection creates it (bindings/select/events.lua); its
--- profiler and the sources change what was requested until the filters are split (bindings/run/version.lua); then the
--- planner sets its route. Its `request` is what C opens.

---@class EventFilters
---@field kernel? string the part that the kernel evaluates
---@field user? string the part that the dispatch loop evaluates

--- Scripts see it as a public event (bindings/view/public_event.lua).
---@class Event
---@field name string "sys:name", or perf's name
---@field alias string name in tables
---@field class integer
---@field request ffi.cdata* struct event_request. Its strings are set when it is opened
---@field system? string of a tracepoint
---@field config1_text? string
---@field kind? string for perf's own events, see PerfEvent
---@field params EventParameters parameters given by a script
---@field tracepoint? ffi.cdata* struct tracepoint *
---@field print_fmt? string overrides the tracepoint's
---@field list Field[]
---@field fields table<string, Field>
---@field view View
---@field filter? string
---@field filters EventFilters the filter's parts, once they are known
---@field attrs table<string, string|boolean>
---@field given SelectorAttr[] the attributes as given, in order, including repeated ones
---@field strings? UserStrings its records have strings behind pointers, which a BPF program adds
---@field is_task_event? boolean it is a record of a task, see event.of_task()
---@field is_derived? boolean it is not opened: it is found in the records of another event, or programs see it
---@field route Route how it is taken
---@field owner? Instance the profiler that requested it
---@field gate? string name of the source that decides whether it is passed on (bpf/run/gates.lua)
---@field context Services names and symbols of the machine that it is of
---@field machine? Machine sends it; nil: it is of this machine or the recording
local Event = {}
Event.__index = Event

local event = {}

---@param fields Event
---@return Event
function event.new(fields)
  fields.filters = {}
  return setmetatable(fields, Event)
end

--- Returns an event that stands for a record of a task: its fork, its name or its exit.
---@param name 'fork'|'comm'|'exit'
---@param class integer
---@param context? Services
---@return Event
function event.of_task(name, class, context)
  return event.new { name = name, alias = name, class = class, is_task_event = true, attrs = {}, fields = {}, list = {},
    owner = {}, view = {}, route = {}, context = context }
end

-- The request, in start() ------------------------------------------------------------------------

--- Sets or removes the filter.
---@param text? string
function Event:set_filter(text) self.filter = text end

--- Adds a condition to the filter.
---@param text string
function Event:add_filter(text) self.filter = self.filter and ('(%s) && (%s)'):format(self.filter, text) or text end

--- Sets the strings behind pointers that the records have.
---@param strings? UserStrings
function Event:set_strings(strings) self.strings = strings or nil end

--- Notes that the event is not opened: it is found in the records of another event.
function Event:derive() self.is_derived = true end

--- Returns whether a profiler reads the event only to know when threads get other ids.
---@return boolean
function Event:is_aside() return self.owner ~= nil and self.owner.id_changes == self end

--- Makes the attributes given to a source those of its event.
---@param attrs table<string, string|boolean>
---@param given SelectorAttr[]
---@param gate? string name of the source if it decides which events are passed on
function Event:lend(attrs, given, gate)
  self.attrs, self.given, self.alias, self.gate = attrs, given, attrs.alias or self.alias, gate or self.gate
end

--- Replaces the attributes. Returns those before.
---@param attrs table<string, string|boolean>
---@return table<string, string|boolean>
function Event:swap_attrs(attrs)
  local before = self.attrs
  self.attrs = attrs
  return before
end

--- Sets who decides whether the event is passed on.
---@param gate? string name of the source
function Event:set_gate(gate) self.gate = gate end

-- Set-up -----------------------------------------------------------------------------------------

--- Sets by whom names and fields of the event are found.
---@param context Services
---@param view View
function Event:view_in(context, view) self.context, self.view = context, view end

--- Sets the parts of the filter.
---@param filters EventFilters
function Event:split_filter(filters) self.filters = filters end

--- Completes the request, before it is added to a session.
---@param filter? string for the kernel
function Event:complete(filter)
  local request = self.request
  request.name, request.config1_text, request.cpus = self.name, self.config1_text, self.attrs.cpus
  request.filter = request.bpf_array == 0 and filter or nil -- a program that writes the samples has the filter
end

return event
