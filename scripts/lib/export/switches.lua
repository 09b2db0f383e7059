-- SPDX-License-Identifier: GPL-2.0-only
--- Who runs on the CPUs, according to sched_switch. A switch says who runs from now on; that is only true if the next
--- switch of the CPU is one from the same task. It is not if events were lost or filtered out, or if only those of some
--- threads are seen. So each switch is held back until the next one confirms it.
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local sched_switch = require 'bindings.expr.sched_switch'

local cast = ffi.cast
local switches = {}

--- A switch that is held back.
---@class Switch
---@field cpu integer
---@field time number
---@field tid integer of the event
---@field raw ffi.cdata* copy of its payload
---@field next_pid integer
---@field is_sure boolean the switch before it was confirmed

--- The switches of an exporter. Two of its events may be the same tracepoint, with different filters.
---@class Switches
---@field seen integer those that have one before them on their CPU
---@field broken integer of these, those from another task than the CPU had entered
local Switches = {}
Switches.__index = Switches

---@return Switches
function switches.new() return setmetatable({ seen = 0, broken = 0, _held = {}, _finishers = {} }, Switches) end

--- Returns what takes each sched_switch; nil for other events, and for those of other machines.
---@param event Event
---@param take fun(switch: Switch, to: number, is_confirmed: boolean, name: fun(switch: Switch): ffi.cdata*, integer)
--- is called with each switch at the next one of its CPU, at time `to`; name: returns the bytes of the name of the
--- task that runs, and how many
---@return fun(e: ffi.cdata*)? switched takes a struct event *
function Switches:of(event, take)
  if event.name ~= 'sched:sched_switch' or event.machine or not event.fields.next_comm then return end
  local payload, size, by_cpu = event.view.payload, event.view.size, self._held
  local comm_size = event.fields.next_comm.size
  local function name(switch)
    local comm = cast(payload, switch.raw).next_comm
    return comm, tonumber(libc.strnlen(comm, comm_size))
  end
  table.insert(self._finishers, function(time)
    for cpu, held in pairs(by_cpu) do
      by_cpu[cpu] = nil
      take(held, math.max(time, held.time), held.is_sure, name)
    end
  end)
  return function(e)
    if e.raw_size < size or e.cpu < 0 then return end
    local held, p = by_cpu[e.cpu], cast(payload, e.raw)
    if held and held.time == e.time then return end -- the same switch
    local is_sure = held ~= nil and not sched_switch.is_missing(held.next_pid, p.prev_pid)
    if held then
      self.seen, self.broken = self.seen + 1, self.broken + (is_sure and 0 or 1)
      take(held, e.time, is_sure, name)
    else
      held = { cpu = e.cpu, raw = ffi.new('uint8_t[?]', size) }
      by_cpu[e.cpu] = held
    end
    held.time, held.tid, held.next_pid, held.is_sure = e.time, e.tid, p.next_pid, is_sure
    ffi.copy(held.raw, e.raw, size)
  end
end

--- Passes on the last switches, confirmed if those before were.
---@param time number
function Switches:finish(time)
  for _, finish in ipairs(self._finishers) do finish(time) end
end

return switches
