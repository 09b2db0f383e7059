-- SPDX-License-Identifier: GPL-2.0-only
--- The events that a recording has, as its attributes say.
local ffi = require 'ffi'
local perf_events = require 'bindings.view.perf_events'

local C = ffi.C
local recorded = {}

local TRACEPOINT = perf_events.TYPES.tracepoint
local DUMMY = perf_events.find 'dummy'

---@class RecordedEvent
---@field name string
---@field type integer perf_event_attr.type
---@field config integer

--- The name that perf has for an event, if the recording has none: its name is type and config then.
local function name_of(one)
  local name = ffi.string(one.name)
  for _, known in ipairs(name:match '^%d+:%d+$' and perf_events.names or {}) do
    local event = perf_events.find(known)
    if event.type == one.type and event.config == tonumber(one.config) then return known end
  end
  return name
end

--- All of them, in the recording's order; one may be there several times.
---@param session ffi.cdata* struct session *
---@return RecordedEvent[]
function recorded.list(session)
  local n, list = ffi.new 'uint32_t[1]', {}
  local found = C.session_recorded_events(session, n)
  for i = 0, n[0] - 1 do
    list[i + 1] = { name = name_of(found[i]), type = found[i].type, config = tonumber(found[i].config) }
  end
  return list
end

--- Whether perf added the event for names and mappings, as it does to each recording.
---@param one RecordedEvent
function recorded.is_dummy(one) return one.type == DUMMY.type and one.config == DUMMY.config end

--- An event of perf; perf adds modifiers to the name, as in "cycles:u", and some events have two names.
---@param list RecordedEvent[]
---@param name string
---@return RecordedEvent?
function recorded.find(list, name)
  local known = not name:find(':', 1, true) and perf_events.find(name)
  for _, one in ipairs(list) do
    if one.name == name or one.name:match '^[^:/]+' == name then return one end
    if known and one.type == known.type and one.config == known.config then return one end
  end
end

--- The names of perf's own events.
---@param list RecordedEvent[]
---@return string[]
function recorded.perf_event_names(list)
  local names = {}
  for _, one in ipairs(list) do
    if one.type ~= TRACEPOINT and not recorded.is_dummy(one) then names[#names + 1] = one.name end
  end
  return names
end

return recorded
