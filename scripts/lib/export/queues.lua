-- SPDX-License-Identifier: GPL-2.0-only
--- Run queues: who is runnable and waits for a CPU, according to sched_switch, and to sched_wakeup, sched_wakeup_new
--- and sched_migrate_task if they are there. A wait begins when a task wakes up, or when it is switched out while
--- runnable; it ends when the task runs. After a loss, and when a task turns up in a place where it cannot have come
--- from, what is known of its wait is dropped. If the switches of many tasks are not seen (-p), nothing more is told.
local ffi = require 'ffi'
local sched_switch = require 'bindings.expr.sched_switch'

local cast = ffi.cast
local queues = {}

local MAX_BROKEN = 1 / 50 -- of the switches, after which they are those of some tasks only

---@class RunQueues
---@field is_partial boolean many switches are missing
---@field lose fun() events were lost
---@field finish fun(time: number) ends the waits that have not ended; time: the end of the run
local Queues = {}
Queues.__index = Queues

--- What the run queues tell.
---@class RunQueueListener
---@field waited? fun(tid: integer, cpu: integer, from: number, to: number) a task waited for the CPU
---@field length? fun(cpu: integer, time: number, length: integer) so many tasks wait for the CPU from now on

---@param listener RunQueueListener
---@return RunQueues
function queues.new(listener)
  local self = setmetatable({ is_partial = false }, Queues)
  -- Upvalues, as compiled code knows where they are.
  local say_waited, say_length = listener.waited, listener.length
  local since, cpu_of = {}, {} -- by tid: when its wait began, and for which CPU
  local running, switched, lengths = {}, {}, {} -- by CPU: the task, the time of its last switch, how many wait
  local switches, broken = 0, 0
  local tells = true

  local function change(cpu, time, by)
    local length = (lengths[cpu] or 0) + by
    lengths[cpu] = length
    if say_length and running[cpu] and tells then say_length(cpu, time, length) end
  end

  --- A task does not wait any more. Returns since when it did; nil if that is unknown.
  local function drop(tid, time)
    local from = since[tid]
    if not from then return end
    since[tid] = nil
    change(cpu_of[tid], time, -1)
    return from
  end

  --- A task waits for a CPU from now on.
  local function begin(tid, cpu, time)
    if tid <= 0 then return end
    if since[tid] then drop(tid, time) end
    since[tid], cpu_of[tid] = time, cpu
    change(cpu, time, 1)
  end

  --- Forgets who waits.
  local function clear()
    for cpu, length in pairs(lengths) do
      if length > 0 then change(cpu, switched[cpu] or 0, -length) end
    end
    for tid in pairs(since) do since[tid] = nil end
    for cpu in pairs(running) do running[cpu] = nil end
  end

  --- A switch is missing.
  local function note_break()
    broken = broken + 1
    if tells and broken > 10 and broken > switches * MAX_BROKEN then
      clear()
      tells, self.is_partial = false, true
    end
  end

  function self._switch(event)
    local payload, size, preempted = event.view.payload, event.view.size, sched_switch.preempted(event)
    return function(e)
      local cpu, time = e.cpu, e.time
      if e.raw_size < size or cpu < 0 or switched[cpu] == time then return end -- the same switch, asked for twice
      local p = cast(payload, e.raw)
      local prev, next_pid, state = p.prev_pid, p.next_pid, tonumber(p.prev_state)
      switched[cpu], switches = time, switches + 1
      if sched_switch.is_missing(running[cpu], prev) then note_break() end
      drop(prev, time)
      local from = next_pid > 0 and drop(next_pid, time)
      if from and say_waited and tells then say_waited(next_pid, cpu, from, time) end
      running[cpu] = next_pid
      if sched_switch.is_runnable(state, preempted) then begin(prev, cpu, time) end
    end
  end

  function self._wakeup(event)
    local payload, size = event.view.payload, event.view.size
    return function(e)
      if e.raw_size < size then return end
      local p = cast(payload, e.raw)
      local tid, cpu = p.pid, p.target_cpu
      if running[cpu] ~= tid then begin(tid, cpu, e.time) end
    end
  end

  function self._migrate(event)
    local payload, size = event.view.payload, event.view.size
    return function(e)
      if e.raw_size < size then return end
      local p = cast(payload, e.raw)
      local tid, cpu = p.pid, p.dest_cpu
      if not since[tid] or cpu == cpu_of[tid] then return end
      change(cpu_of[tid], e.time, -1)
      cpu_of[tid] = cpu
      change(cpu, e.time, 1)
    end
  end

  self.lose = clear

  function self.finish(time)
    for tid, from in pairs(since) do
      local cpu = cpu_of[tid]
      -- A CPU without switches is one that is not watched.
      if say_waited and running[cpu] and time > from then say_waited(tid, cpu, from, time) end
    end
  end

  return self
end

local HANDLERS = {
  ['sched:sched_switch'] = { '_switch', 'prev_state' },
  ['sched:sched_wakeup'] = { '_wakeup', 'target_cpu' },
  ['sched:sched_wakeup_new'] = { '_wakeup', 'target_cpu' },
  ['sched:sched_migrate_task'] = { '_migrate', 'dest_cpu' },
}

--- Returns what takes each event of a class; nil for events that say nothing, and for those of other machines.
---@param event Event
---@return fun(e: ffi.cdata*)? take struct event *
function Queues:of(event)
  local handler = HANDLERS[event.name]
  if not handler or event.machine or not event.fields[handler[2]] then return end
  return self[handler[1]](event)
end

return queues
