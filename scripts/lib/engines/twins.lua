-- SPDX-License-Identifier: GPL-2.0-only
--- Twins: two events of a run may be the same tracepoint with different filters, as in rundelay. What passes both is
--- recorded twice. Between the two records their CPU has no other one of that tracepoint.
local twins = {}

local function is_same(a, b, event)
  for name, field in pairs(event.fields) do
    local is_value = field.size <= 8 and (field.count or 1) <= 1 or type(a[name]) == 'string'
    if is_value and not name:find '^common_' and a[name] ~= b[name] then return false end
  end
  return true
end

---@class Occurrence
---@field shown boolean whether one of its records is shown

--- Finds the records of the same occurrences.
---@param history History
---@param from integer number of the first event
---@param to integer number after the last event
---@param shown table<integer, boolean> numbers of events that are shown in any case
---@return table<integer, Occurrence> occurrences by number of the event
function twins.find(history, from, to, shown)
  local last, found = {}, {} -- last: the latest occurrence, by machine, tracepoint and CPU
  for i = from, to - 1 do
    local ev, event = history:at(i)
    if not ev then break end
    local machine = event.machine and event.machine.index or 0
    local by_name = last[machine] or {}
    local by_cpu = by_name[event.name] or {}
    last[machine], by_name[event.name] = by_name, by_cpu
    local before = by_cpu[ev._cpu]
    if before and not before.events[event] and is_same(before.ev, ev, event) then
      before.events[event] = true
      before.shown = before.shown or shown[i]
      found[i] = before
    else
      found[i] = { ev = ev, events = { [event] = true }, shown = shown[i] }
      by_cpu[ev._cpu] = found[i]
    end
  end
  return found
end

return twins
