-- SPDX-License-Identifier: GPL-2.0-only
--- Runs and waits of tasks, from switches, wakeups and migrations. A task waits for a CPU from its wakeup, or from when
--- it is switched out while runnable, until it runs.
local array = require 'lib.array'
local cpu_runs = require 'lib.engines.sched.cpu_runs'
local intern = require 'lib.intern'
local sched_switch = require 'bindings.expr.sched_switch'
local threads = require 'lib.threads'

local tasks = {}

local MAX_NAMES, MIGRATIONS = 65536, 65536
local UNKNOWN = '<...>'

--- The sums of a task since the last report.
---@class SchedTask
---@field tid integer
---@field name string
---@field runtime number ns
---@field waits integer
---@field waited number ns
---@field longest number ns
---@field longest_end number ns: its end

--- A run of a task that has ended.
---@class SchedRun
---@field tid integer
---@field name string
---@field cpu integer
---@field time number ns: its end
---@field run number ns
---@field off? number ns off CPU before it
---@field wait? number ns of these: waiting for the CPU
---@field state? integer in which it was off CPU; see sched_switch.STATES

--- The time that others ran while a task waited.
---@class SchedBehind
---@field cpu integer
---@field tid integer cpu_runs.HOLE: not known
---@field ns number
---@field runs integer

---@class SchedTasks
---@field cpus AllCpuRuns
---@field switch fun(ev: Ev)
---@field wakeup fun(ev: Ev)
---@field migrate fun(ev: Ev)
---@field lost fun(gap: table)
---@field name fun(tid: integer): string
---@field renamed fun(ev: Ev) takes the records of tasks that get a name, or begin
---@field report fun(each: fun(task: SchedTask)) calls a function with each task, and begins the next report

---@class SchedTaskSettings
---@field chosen fun(tid: integer): boolean whether a task is reported
---@field preempted integer the bit of prev_state of preempted tasks
---@field than number ns: on_wait is called with longer waits
---@field on_wait fun(tid: integer, cpu: integer, from: number, to: number, behind: SchedBehind[])
---@field on_run? fun(run: SchedRun)

--- The last migrations of waiting tasks, each with the one before it of the same task.
local function new_migrations()
  local last = array.new(threads.MAX) -- by task: 1 + its number
  local n, tids, times, from_cpu, before = 0, array.new(MIGRATIONS), array.new(MIGRATIONS), array.new(MIGRATIONS),
    array.new(MIGRATIONS)
  local self = {}
  function self.add(tid, cpu, time)
    local at = n % MIGRATIONS
    tids[at], times[at], from_cpu[at], before[at] = tid, time, cpu, last[tid]
    n = n + 1
    last[tid] = n
  end
  --- Calls a function with the parts of a wait at each CPU, the last one first.
  function self.each(tid, cpu, from, to, each)
    local number = last[tid]
    while number > n - MIGRATIONS and number > 0 do
      local at = (number - 1) % MIGRATIONS
      if tids[at] ~= tid or times[at] < from then break end
      each(cpu, times[at], to)
      cpu, to, number = from_cpu[at], times[at], before[at]
    end
    each(cpu, from, to)
  end
  return self
end

--- Returns who ran on the CPUs for which a task waited, longest first.
local function find_behind(cpus, migrations, tid, cpu, from, to)
  local list, by_key = {}, {}
  migrations.each(tid, cpu, from, to, function(number, begins, ends)
    cpu_runs.between(cpus:of(number, begins), begins, ends, function(other, ns)
      local key = number * threads.MAX + other
      local one = by_key[key]
      if not one then
        one = { cpu = number, tid = other, ns = 0, runs = 0 }
        by_key[key], list[#list + 1] = one, one
      end
      one.ns, one.runs = one.ns + ns, one.runs + 1
    end)
  end)
  table.sort(list, function(a, b)
    if a.ns ~= b.ns then return a.ns > b.ns end
    if a.cpu ~= b.cpu then return a.cpu < b.cpu end
    return a.tid < b.tid
  end)
  return list
end

--- Names of tasks, by the last switch: recordings may lack the records that name them.
local function new_names()
  local comms, ids = intern.new(1, MAX_NAMES), array.new(threads.MAX)
  local self = {}
  function self.set(tid, comm) ids[tid] = comms.id(comm) + 1 end
  function self.has(tid) return ids[tid] > 0 end
  function self.forget(ev) ids[ev._tid] = 0 end
  function self.of(tid)
    local id = ids[tid]
    return id > 0 and id <= comms.max and comms:part(id - 1, 1) or UNKNOWN
  end
  return self
end

--- The sums of tasks between two reports.
local function new_sums(name_of)
  local max = threads.MAX
  local runtime, waits, waited = array.new(max), array.new(max), array.new(max)
  local longest, longest_end, is_listed, list = array.new(max), array.new(max), array.new(max), {}
  local self = {}
  local function note(tid)
    if is_listed[tid] ~= 0 then return end
    is_listed[tid], list[#list + 1] = 1, tid
  end
  function self.run(tid, ns)
    note(tid)
    runtime[tid] = runtime[tid] + ns
  end
  function self.wait(tid, ns, time)
    note(tid)
    waits[tid], waited[tid] = waits[tid] + 1, waited[tid] + ns
    if ns > longest[tid] then longest[tid], longest_end[tid] = ns, time end
  end
  function self.report(each)
    for _, tid in ipairs(list) do
      each { tid = tid, name = name_of(tid), runtime = runtime[tid], waits = waits[tid], waited = waited[tid],
        longest = longest[tid], longest_end = longest_end[tid] }
      runtime[tid], waits[tid], waited[tid], longest[tid], longest_end[tid], is_listed[tid] = 0, 0, 0, 0, 0, 0
    end
    list = {}
  end
  return self
end

--- Who waits for which CPU. It keeps the lengths of the queues.
local function new_queue(cpus, migrations)
  local since, cpu_of = array.new(threads.MAX), array.new(threads.MAX) -- since: 1 + the time; 0: the task does not wait
  local self = { known_from = 0 } -- 1 + the end of the last loss
  function self.begin(tid, cpu, time)
    if time < self.known_from or cpu < 0 or cpu >= threads.MAX_CPUS then return end
    since[tid], cpu_of[tid] = time + 1, cpu
    cpus:wait(cpus:of(cpu, time), 1, time)
  end
  --- Ends a wait. Returns when it began; -1: the task did not wait, or events are lost since then.
  function self.finish(tid, time)
    local from = since[tid]
    if from == 0 then return -1 end
    since[tid] = 0
    if from <= self.known_from then return -1 end
    cpus:wait(cpus:of(cpu_of[tid], time), -1, time)
    return from - 1
  end
  function self.move(tid, cpu, time)
    local before = cpu_of[tid]
    if since[tid] <= self.known_from or cpu == before or cpu < 0 or cpu >= threads.MAX_CPUS then return end
    cpus:wait(cpus:of(before, time), -1, time)
    cpus:wait(cpus:of(cpu, time), 1, time)
    cpu_of[tid] = cpu
    migrations.add(tid, before, time)
  end
  function self.waits(tid) return since[tid] > self.known_from end
  return self
end

--- Adds the functions that take wakeups, migrations and losses.
local function add_wakeups(self, queue, on_cpu)
  local max, cpus = threads.MAX, self.cpus
  --- A task that runs is not woken: it has only not gone to sleep yet.
  function self.wakeup(ev)
    local tid, now = ev.pid, ev._time
    if tid <= 0 or tid >= max or queue.waits(tid) then return end
    local cpu = on_cpu[tid]
    if cpu > 0 and cpus:of(cpu - 1, now).tid == tid then return end
    queue.begin(tid, ev.target_cpu, now)
  end
  function self.migrate(ev)
    if ev.pid > 0 and ev.pid < max then queue.move(ev.pid, ev.dest_cpu, ev._time) end
  end
  function self.lost(gap)
    queue.known_from = math.max(queue.known_from, 1 + gap.to)
    cpus:clear_waits(gap.from)
    cpus:lose(gap.cpu, gap.from)
  end
end

--- Follows tasks.
---@param given SchedTaskSettings
---@return SchedTasks
function tasks.new(given)
  local chosen, preempted, than, on_run = given.chosen, given.preempted, given.than, given.on_run
  local max, cpus, migrations, names = threads.MAX, cpu_runs.new(), new_migrations(), new_names()
  local sums, queue = new_sums(names.of), new_queue(cpus, migrations)
  -- By task: 1 + its CPU; 1 + when it left it, in which state; how long it was off it and waited before its run.
  local on_cpu, left, states, off, wait = array.new(max), array.new(max), array.new(max), array.new(max), array.new(max)
  local self = { cpus = cpus, name = names.of, renamed = names.forget, report = sums.report }

  local function put_run(tid, cpu, now, began)
    local is_known = off[tid] >= 0
    on_run { tid = tid, name = names.of(tid), cpu = cpu, time = now, run = now - began,
      off = is_known and off[tid] or nil, wait = wait[tid] >= 0 and wait[tid] or nil,
      state = is_known and states[tid] > 0 and states[tid] or nil }
  end
  local function leave(tid, ev, cpu, now, began)
    local bits = tonumber(ev.prev_state)
    local state = sched_switch.state_of(bits) or 0
    if not names.has(tid) then names.set(tid, ev.prev_comm) end
    if began and chosen(tid) then
      sums.run(tid, now - began)
      if on_run then put_run(tid, cpu, now, began) end
    end
    queue.finish(tid, now)
    on_cpu[tid], left[tid], states[tid] = 0, now + 1, state
    if sched_switch.is_runnable(bits, preempted) then queue.begin(tid, cpu, now) end
  end
  local function enter(tid, ev, cpu, now)
    local from = queue.finish(tid, now)
    on_cpu[tid], wait[tid] = cpu + 1, from >= 0 and now - from or -1
    off[tid] = left[tid] > queue.known_from and now - left[tid] + 1 or -1
    if from < 0 or not chosen(tid) then return end
    sums.wait(tid, now - from, now)
    if now - from > than then
      names.set(tid, ev.next_comm)
      given.on_wait(tid, cpu, from, now, find_behind(cpus, migrations, tid, cpu, from, now))
    end
  end
  function self.switch(ev)
    local number, now, prev, next_tid = ev._cpu, ev._time, ev.prev_pid, ev.next_pid
    if number < 0 or number >= threads.MAX_CPUS then return end
    local cpu = cpus:of(number, now)
    local began = cpus:switch(cpu, prev, next_tid, now)
    if prev > 0 and prev < max then leave(prev, ev, number, now, began) end
    if next_tid > 0 and next_tid < max then enter(next_tid, ev, number, now) end
  end
  add_wakeups(self, queue, on_cpu)
  return self
end

return tasks
