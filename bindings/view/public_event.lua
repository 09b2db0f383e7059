-- SPDX-License-Identifier: GPL-2.0-only
--- Public event: a script's read-only view of a requested event, used as the key of a handler and as the value of an
--- option of type event. It hides the host's table (bindings/select/events.lua). Here is also what handlers get.
local nearest = require 'bindings.base.nearest'
local views = require 'bindings.view.views'

local public_event = {}

--- A sample or record, the argument of a handler. It is valid until the handler returns. Payload fields have the names
--- of the format file (`ev.next_pid`). Members of the sample itself start with an underscore.
---
--- - Integers are numbers. A 64-bit value that a number cannot hold exactly (beyond 2^53) is an integer64. `ev:u64
---   'field'` always returns all 64 bits.
--- - Text is a string. Arrays are indexed from 0: `ev.args[0]`, `#ev.args`.
--- - A field whose name is a Lua keyword is `ev['function']`.
--- - Access to a field that the event does not have is reported before the run starts, with the nearest name.
---@class Ev
---@field _time number ns since the start of the run, or of the recording
---@field _pid integer process; -1: unknown, as in events of an exited thread
---@field _tid integer thread
---@field _cpu integer -1: unknown
---@field _node integer NUMA node of the CPU; -1: unknown
---@field _machine integer 0: of this machine; from 1: of the machines of pull=, in the order of their first use
---@field _comm string name of the thread at that time
---@field _event string name of the event: 'sched:sched_switch'
---@field _period number number of events, or ns of a clock, that the sample represents
---@field _stack integer id of the callchain, for session.frames() and lib.stacks: equal callchains have equal ids;
--- -1: no callchain was recorded
---@field _key integer64 the key computed by lib.pairs
---@field _ip number only in perf's own events: address of the interrupted instruction
---@field _addr number only in perf's own events: the sampled data address; 0: none
---@field _weight number only if requested with sample = { 'weight' }; likewise _data_src and _phys_addr
---@field _cgroup number id of the control group (version 2) that the thread is in, for session.cgroup_name(); 0:
--- unknown, as for tracepoints with --call-graph dwarf. Only in events of this machine, and in recordings that have it
---@field _container string name of the container, pod or systemd unit of `_cgroup`; the path of any other group
---@field _parent integer only in the handler `fork`: the thread that created the new one
---@field u64 fun(self: Ev, field: string): integer64 all 64 bits of a field
---@field string fun(self: Ev, name: string): string the string to which an argument of a system call points, in
--- `syscalls:sys_enter_*` and `syscalls:sys_exit_*`: `ev:string 'filename'`. The name must be written out, because
--- profscript looks for it before the run. The string ends with `...` if it has more than 256 bytes, or is `<null>` or
--- `<unreadable>`. All strings of a list such as argv are one text. A buffer such as that of `write` ends where the
--- call says, and is `<unwritten>` before the call has filled it. Also returns fields that are strings themselves
---@field user fun(self: Ev, type: string, name: string): number|nil a number in the program's memory, at the address in
--- the argument `name` of a system call or a kernel function, as it was when the event happened: `ev:user('u32',
--- 'uaddr')`, `ev:user('struct sockaddr_in.sin_port', 'uservaddr')`; nil: it could not be read. Both must be written
--- out
---@field keep fun(self: Ev): Ev a copy that is valid as long as the script references it

--- A field of an event.
---@class EventField
---@field name string
---@field type string as in the format file
---@field kind string 'signed', 'string', 'array of 6, 8 bytes each'...
---@field offset integer
---@field size integer bytes
---@field count integer elements of an array

--- An event that the user or a script requested: `[event] = function(ev) ... end` is its handler. It is read-only;
--- event:set() changes it.
---@class Event
---@field name string 'sched:sched_switch', 'cpu-clock'
---@field alias string the attribute alias=, or else the name without its system
---@field class integer unique within the run
---@field attrs table<string, string|number|boolean> attributes by name; true: given without a value
---@field given { name: string, value?: string|number }[] the attributes as given, in order, including repeated ones
---@field fields table<string, EventField> by name
---@field filter? string
---@field kind? string for perf's own events: 'software', 'hardware', 'hw-cache', 'raw', 'pmu' or 'breakpoint'
---@field freq? number samples per second
---@field owner { name: string } the profiler that requested it
local Event = {}

local READABLE = {
  name = true, alias = true, class = true, given = true, filter = true, kind = true
}

local real_of = setmetatable({}, { __mode = 'k' })
local public_of = setmetatable({}, { __mode = 'k' })

local function refuse_writing() error('events are read-only: use event:set() to change them', 2) end

local function check_string(name, value)
  if type(value) ~= 'string' then error(('event:set: %s is a %s, not a string'):format(name, type(value)), 3) end
end

local SETTINGS = {
  filter = function(event, value)
    check_string('filter', value)
    event:set_filter(value ~= '' and value or nil)
  end,
  key = function(event, value)
    check_string('key', value)
    event.attrs.key = value
  end,
  role = function(event, value)
    check_string('role', value)
    event.attrs.role = value
  end,
  stack = function(event, value)
    if type(value) ~= 'boolean' then error(('event:set: stack is a %s, not a boolean'):format(type(value)), 3) end
    event.attrs.stack = value or nil
  end,
  resolve = function(event, value) event.request.resolve = value and 1 or 0 end,
}

--- Changes the request. Only valid in start().
---@param settings { filter?: string, key?: string, role?: string, stack?: boolean, resolve?: boolean }
--- filter: replaces the filter, '' removes it; key, role: replace the attributes; stack: whether samples have stacks;
--- resolve: whether session.address() can look up addresses
function Event:set(settings)
  local event = real_of[self]
  if not event then error('event:set is a method of events: call it with a colon', 2) end
  if type(settings) ~= 'table' then error(('event:set takes a table, not a %s'):format(type(settings)), 2) end
  if event.owner and event.owner.settled then error('event:set: only valid in start()', 2) end
  for name, value in pairs(settings) do
    local set = SETTINGS[name]
    if not set then
      error(("event:set: unknown setting '%s'%s"):format(tostring(name),
        nearest.hint(tostring(name), nearest.keys(SETTINGS))), 2)
    end
    set(event, value)
  end
end

--- Members that are built on first access, so that scripts do not get the host's own tables.
local BUILT = {
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
  freq = function(event)
    local attr = event.request.attr
    return attr.freq == 1 and tonumber(attr.sample_freq) or nil
  end,
  owner = function(event) return { name = event.owner and event.owner.name } end,
}

local names = nearest.keys(READABLE)
for _, name in ipairs { 'attrs', 'fields', 'freq', 'owner', 'set' } do names[#names + 1] = name end

local Public = {
  __index = function(self, name)
    if READABLE[name] then return real_of[self][name] end
    if name == 'set' then return Event.set end
    if not BUILT[name] then
      error(("events have no '%s'%s"):format(tostring(name), nearest.hint(tostring(name), names)), 2)
    end
    local value = BUILT[name](real_of[self])
    rawset(self, name, value)
    return value
  end,
  __newindex = refuse_writing,
  __tostring = function(self) return 'event ' .. real_of[self].name end,
}

--- Returns the public event for an event, or a list of them for a list, recursively. Returns any other value unchanged.
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

--- Returns the host's event for a public one, or a list of them for a list, recursively. Returns any other value
--- unchanged.
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

--- Returns the host's event for a script's argument. Errors point at the line of the caller's caller.
---@param event any
---@param what string the function that was called: "session.expression"
---@return table
function public_event.one(event, what)
  local real = type(event) == 'table' and (real_of[event] or public_of[event] and event)
  if not real then
    error(('%s takes an event, as returned by session.event(), not a %s'):format(what, type(event)), 3)
  end
  return real
end

return public_event
