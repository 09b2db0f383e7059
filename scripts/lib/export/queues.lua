-- SPDX-License-Identifier: GPL-2.0-only
--- Run queues: who is runnable and waits for a CPU, according to sched_switch, and to sched_wakeup or sched_waking,
--- sched_wakeup_new and sched_migrate_task if they are there. A wait begins when a task wakes up, or is switched out
--- while runnable; it ends when the task runs. After a loss, and when a task turns up in a place where it cannot
--- have come from, what is known of its wait is dropped: where some switches are missing, there are holes. If the
--- switches of many tasks are not seen (-p), nothing more is said.
local ffi = require 'ffi'
local sched_switch = require 'bindings.expr.sched_switch'

local cast = ffi.cast
local queues = {}

local MAX_BROKEN = 1 / 4 -- of the switches: half are broken if only some tasks are seen, few if the kernel hides some

---@class RunQueues
---@field is_partial boolean many switches are missing
---@field lose fun() events were lost
---@field finish fun(time: number) ends the waits that have not ended; time: the end of the run
local Queues = {}
Queues.__index = Queues

--- What is called with the waits.
---@class RunQueueListener
---@field waited? fun(tid: integer, cpu: integer, from: number, to: number) a task waited for the CPU
---@field length? fun(cpu: integer, time: number, length: integer) so many tasks wait for the CPU from now on

--- Who waits. Returns functions, as compiled code knows where their upvalues are.
---@param queues_of RunQueues
---@param listener RunQueueListener
local function new_waits(queues_of, listener)
  local say_waited, say_length = listener.waited, listener.length
  local waits = { since = {}, cpu_of = {} } -- by tid: when its wait began, and for which CPU
  local since, cpu_of = waits.since, waits.cpu_of
  local running, switched, lengths = {}, {}, {} -- by CPU: the task, the time of its last switch, how many wait
  local is_open = true
  waits.running, waits.switched = running, switched

  local function change(cpu, time, by)
    local length = (lengths[cpu] or 0) + by
    lengths[cpu] = length
    if say_length and running[cpu] and is_open then say_length(cpu, time, length) end
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
  function waits.begin(tid, cpu, time)
    if tid <= 0 then return end
    if since[tid] then drop(tid, time) end
    since[tid], cpu_of[tid] = time, cpu
    change(cpu, time, 1)
  end

  --- Forgets who waits.
  function waits.clear()
    for cpu, length in pairs(lengths) do
      if length > 0 then change(cpu, switched[cpu] or 0, -length) end
    end
    for tid in pairs(since) do since[tid] = nil end
    for cpu in pairs(running) do running[cpu] = nil end
  end

  --- Many switches are missing: they are those of some tasks only.
  function waits.give_up()
    if is_open then waits.clear() end
    is_open, queues_of.is_partial = false, true
  end

  --- A task runs, and has waited until now.
  function waits.run(tid, cpu, time)
    local from = tid > 0 and drop(tid, time)
    if from and say_waited and is_open then say_waited(tid, cpu, from, time) end
  end
  waits.change, waits.drop, waits.say_waited = change, drop, say_waited
  return waits
end

--- Ends the waits that have not ended.
local function finish(waits, time)
  for tid, from in pairs(waits.say_waited and waits.since or {}) do
    local cpu = waits.cpu_of[tid]
    -- A CPU without switches is one that is not watched.
    if waits.running[cpu] and time > from then waits.say_waited(tid, cpu, from, time) end
  end
end

--- Returns what takes the records of an event, if they are long enough.
---@param take fun(e: ffi.cdata*, p: ffi.cdata*)
local function reader(event, take)
  local payload, size = event.view.payload, event.view.size
  return function(e)
    if e.raw_size >= size then take(e, cast(payload, e.raw)) end
  end
end

local function read_switches(event, waits)
  local preempted, running, switched = sched_switch.preempted(event), waits.running, waits.switched
  local drop, run, begin, switches, broken = waits.drop, waits.run, waits.begin, 0, 0
  return reader(event, function(e, p)
    local cpu, time = e.cpu, e.time
    if cpu < 0 or switched[cpu] == time then return end -- the same switch, asked for twice
    local prev, next_pid = p.prev_pid, p.next_pid
    switched[cpu], switches = time, switches + 1
    if sched_switch.is_missing(running[cpu], prev) then
      broken = broken + 1
      if broken > 10 and broken > switches * MAX_BROKEN then waits.give_up() end
    end
    drop(prev, time)
    run(next_pid, cpu, time)
    running[cpu] = next_pid
    if sched_switch.is_runnable(tonumber(p.prev_state), preempted) then begin(prev, cpu, time) end
  end)
end

local function read_wakeups(event, waits)
  local running, begin = waits.running, waits.begin
  return reader(event, function(e, p)
    local tid, cpu = p.pid, p.target_cpu
    if running[cpu] ~= tid then begin(tid, cpu, e.time) end
  end)
end

--- sched_waking comes before the CPU is chosen; a migration follows if it is another one.
local function read_wakings(event, waits)
  local running, since, begin = waits.running, waits.since, waits.begin
  return reader(event, function(e, p)
    local tid, cpu = p.pid, p.target_cpu
    if running[cpu] ~= tid and not since[tid] then begin(tid, cpu, e.time) end
  end)
end

local function read_migrations(event, waits)
  local since, cpu_of, change = waits.since, waits.cpu_of, waits.change
  return reader(event, function(e, p)
    local tid, cpu = p.pid, p.dest_cpu
    if not since[tid] or cpu == cpu_of[tid] then return end
    change(cpu_of[tid], e.time, -1)
    cpu_of[tid] = cpu
    change(cpu, e.time, 1)
  end)
end

---@param listener RunQueueListener
---@return RunQueues
function queues.new(listener)
  local self = setmetatable({ is_partial = false }, Queues)
  self._waits = new_waits(self, listener)
  self.lose = self._waits.clear
  function self.finish(time) finish(self._waits, time) end
  return self
end

local HANDLERS = {
  ['sched:sched_switch'] = { read_switches, 'prev_state' },
  ['sched:sched_wakeup'] = { read_wakeups, 'target_cpu' },
  ['sched:sched_waking'] = { read_wakings, 'target_cpu' },
  ['sched:sched_wakeup_new'] = { read_wakeups, 'target_cpu' },
  ['sched:sched_migrate_task'] = { read_migrations, 'dest_cpu' },
}

--- Returns what takes each event of a class; nil for events that say nothing, and for those of other machines.
---@param event Event
---@return fun(e: ffi.cdata*)? take struct event *
function Queues:of(event)
  local handler = HANDLERS[event.name]
  if not handler or event.machine or not event.fields[handler[2]] then return end
  return handler[1](event, self._waits)
end

return queues
