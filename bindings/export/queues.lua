-- SPDX-License-Identifier: GPL-2.0-only
--- Run queues: who is runnable and waits for a CPU, according to sched_switch, and to sched_wakeup, sched_wakeup_new
--- and sched_migrate_task if they are there. A wait begins when a task wakes up, or when it is switched out while
--- runnable; it ends when the task runs. After a loss, and when a task turns up in a place where it cannot have come
--- from, what is known of its wait is dropped. If the switches of many tasks are not seen (-p), nothing more is told.
local ffi = require 'ffi'
local prev_state = require 'bindings.expr.prev_state'

local cast = ffi.cast
local queues = {}

local MAX_BROKEN = 1 / 50 -- of the switches, after which they are those of some tasks only

---@class RunQueues
---@field is_partial boolean many switches are missing
local Queues = {}
Queues.__index = Queues

--- What the run queues tell.
---@class RunQueueListener
---@field waited? fun(tid: integer, cpu: integer, from: number, to: number) a task waited for the CPU
---@field length? fun(cpu: integer, time: number, length: integer) so many tasks wait for the CPU from now on

---@param listener RunQueueListener
---@return RunQueues
function queues.new(listener)
  return setmetatable({ is_partial = false, _waited = listener.waited, _length = listener.length, _since = {},
    _cpu = {}, _running = {}, _switched = {}, _lengths = {}, _switches = 0, _broken = 0 }, Queues)
end

function Queues:_change(cpu, time, by)
  local length = (self._lengths[cpu] or 0) + by
  self._lengths[cpu] = length
  if self._length and self._running[cpu] and not self.is_partial then self._length(cpu, time, length) end
end

--- A task waits for a CPU from now on.
function Queues:_begin(tid, cpu, time)
  if tid <= 0 then return end
  if self._since[tid] then self:_drop(tid, time) end
  self._since[tid], self._cpu[tid] = time, cpu
  self:_change(cpu, time, 1)
end

--- A task does not wait any more. Returns since when it did; nil if that is unknown.
function Queues:_drop(tid, time)
  local since = self._since[tid]
  if not since then return end
  self._since[tid] = nil
  self:_change(self._cpu[tid], time, -1)
  return since
end

function Queues:_switch(event)
  local payload, size, preempted = event.view.payload, event.view.size, prev_state.preempted(event)
  local running, switched = self._running, self._switched
  return function(e)
    local cpu = e.cpu
    if e.raw_size < size or cpu < 0 or switched[cpu] == e.time then return end -- the same switch, asked for twice
    local p = cast(payload, e.raw)
    local prev, next_pid, state = p.prev_pid, p.next_pid, tonumber(p.prev_state)
    switched[cpu], self._switches = e.time, self._switches + 1
    if running[cpu] and running[cpu] ~= prev then self:_break() end
    self:_drop(prev, e.time)
    local since = next_pid > 0 and self:_drop(next_pid, e.time)
    if since and self._waited and not self.is_partial then self._waited(next_pid, cpu, since, e.time) end
    running[cpu] = next_pid
    if state == 0 or state == preempted then self:_begin(prev, cpu, e.time) end
  end
end

--- A switch is missing.
function Queues:_break()
  self._broken = self._broken + 1
  if not self.is_partial and self._broken > 10 and self._broken > self._switches * MAX_BROKEN then
    self:_clear()
    self.is_partial = true
  end
end

--- Forgets who waits.
function Queues:_clear()
  for cpu, length in pairs(self._lengths) do
    if length > 0 then self:_change(cpu, self._switched[cpu] or 0, -length) end
  end
  for tid in pairs(self._since) do self._since[tid] = nil end
  for cpu in pairs(self._running) do self._running[cpu] = nil end
end

function Queues:_wakeup(event)
  local payload, size = event.view.payload, event.view.size
  return function(e)
    if e.raw_size < size then return end
    local p = cast(payload, e.raw)
    if self._running[p.target_cpu] ~= p.pid then self:_begin(p.pid, p.target_cpu, e.time) end
  end
end

function Queues:_migrate(event)
  local payload, size = event.view.payload, event.view.size
  return function(e)
    if e.raw_size < size then return end
    local p = cast(payload, e.raw)
    local tid, cpu = p.pid, p.dest_cpu
    if not self._since[tid] or cpu == self._cpu[tid] then return end
    self:_change(self._cpu[tid], e.time, -1)
    self._cpu[tid] = cpu
    self:_change(cpu, e.time, 1)
  end
end

local HANDLERS = {
  ['sched:sched_switch'] = { Queues._switch, 'prev_state' },
  ['sched:sched_wakeup'] = { Queues._wakeup, 'target_cpu' },
  ['sched:sched_wakeup_new'] = { Queues._wakeup, 'target_cpu' },
  ['sched:sched_migrate_task'] = { Queues._migrate, 'dest_cpu' },
}

--- Returns what takes each event of a class; nil for events that say nothing, and for those of other machines.
---@param event Event
---@return fun(e: ffi.cdata*)? take struct event *
function Queues:of(event)
  local handler = HANDLERS[event.name]
  if not handler or event.machine or not event.fields[handler[2]] then return end
  return handler[1](self, event)
end

--- Events were lost.
function Queues:lose() self:_clear() end

--- Ends the waits that have not ended.
---@param time number the end of the run
function Queues:finish(time)
  for tid, since in pairs(self._since) do
    local cpu = self._cpu[tid]
    -- A CPU without switches is one that is not watched.
    if self._waited and self._running[cpu] and time > since then self._waited(tid, cpu, since, time) end
  end
end

return queues
