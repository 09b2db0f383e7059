-- SPDX-License-Identifier: GPL-2.0-only
--- The events of a recording, according to its attributes.
local ffi = require 'ffi'
local perf_events = require 'bindings.view.perf_events'

local C = ffi.C
local recorded = {}

local TRACEPOINT = perf_events.TYPES.tracepoint
local DUMMY = perf_events.find 'dummy'
-- What perf calls events that have several names.
local SPELLED = { ['branch-instructions'] = 'branches', ['cpu-cycles'] = 'cycles', faults = 'page-faults',
  ['idle-cycles-backend'] = 'stalled-cycles-backend', ['idle-cycles-frontend'] = 'stalled-cycles-frontend' }

---@class RecordedEvent
---@field name string
---@field type integer perf_event_attr.type
---@field config integer
---@field is_member boolean not sampled: the leader of its group is

--- Returns perf's name of an event that has no name in the recording, which is TYPE:CONFIG then.
local function name_of(one)
  local name = ffi.string(one.name)
  for _, known in ipairs(name:match '^%d+:%d+$' and perf_events.names or {}) do
    local event = perf_events.find(known)
    if event.type == one.type and event.config == tonumber(one.config) then return SPELLED[known] or known end
  end
  return name
end

--- Returns all events in the recording's order. An event may occur several times.
---@param session ffi.cdata* struct session *
---@param member integer
---@return RecordedEvent[]
function recorded.list(session, member)
  local n, list = ffi.new 'uint32_t[1]', {}
  local found = C.session_recorded_events(session, member, n)
  for i = 0, n[0] - 1 do
    list[i + 1] = { name = name_of(found[i]), type = found[i].type, config = tonumber(found[i].config),
      is_member = found[i].is_member }
  end
  return list
end

--- Returns whether this is the dummy event that perf adds to each recording for task names and mappings.
---@param one RecordedEvent
function recorded.is_dummy(one) return one.type == DUMMY.type and one.config == DUMMY.config end

--- Finds one of perf's own events. perf adds modifiers to the name, as in "cycles:u", and some events have two names.
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

--- Returns the names of perf's own events.
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
