-- SPDX-License-Identifier: GPL-2.0-only
--- The time that tasks run on each CPU (oncpu), from switch to switch. Where nothing needs the events, BPF programs do
--- the same in the kernel (session.cpu_times).
local array = require 'lib.array'
local intern = require 'lib.intern'
local task_filter = require 'lib.task_filter'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local MAX_CPU = threads.MAX_CPUS

local cpu_time = { MAX_ROWS = 65536 }

--- The time of one thread, or of the threads of one name, on one CPU.
---@class CpuTimeCell
---@field cpu integer
---@field tid? integer nil with --only-comm
---@field comm string
---@field ns number
---@field runs integer that have ended
---@field longest number ns

--- The functions are called with a dot.
---@class CpuTime
---@field handlers table of the switches and of losses
---@field missed Unreported
---@field take fun(time: number): CpuTimeCell[], number? returns the times until now, and the ns of the tasks that are
--- too many, if there are any. Counts from 0 again
---@field unknown fun(): number returns the ns of CPUs from a loss to the next switch

--- Returns the sums by CPU and thread or name, and a function that adds a run to them.
local function new_sums(ours, only_comm)
  local rows = cpu_time.MAX_ROWS
  local keys = intern.new(2, rows)
  local ns_of, runs, longest = array.new(rows + 1), array.new(rows + 1), array.new(rows + 1)
  local function credit(cpu, tid, comm, ns, complete)
    if not ours.has(tid) then return end
    local id
    if only_comm then id = keys.id(cpu, comm) else id = keys.id(cpu, tid) end
    ns_of[id] = ns_of[id] + ns
    runs[id] = runs[id] + complete
    if ns > longest[id] then longest[id] = ns end
  end
  return { keys = keys, ns = ns_of, runs = runs, longest = longest }, credit
end

--- Returns the sums as a list, and what is beyond the last row, and clears them.
local function take_sums(sums, only_comm, name_of)
  local keys, cells, hidden = sums.keys, {}, nil
  for id = 0, keys.max do
    if id == keys:count() then break end
    local cpu, who = keys:part(id, 1), keys:part(id, 2)
    cells[#cells + 1] = {
      cpu = cpu,
      tid = not only_comm and who or nil,
      comm = only_comm and who or name_of(who),
      ns = sums.ns[id], runs = sums.runs[id], longest = sums.longest[id],
    }
    sums.ns[id], sums.runs[id], sums.longest[id] = 0, 0, 0
  end
  if keys:overflow() > 0 then
    hidden = sums.ns[keys.max]
    sums.ns[keys.max] = 0
  end
  keys:clear()
  return cells, hidden
end

--- Returns the handlers of switches, of ids that change and of losses, and functions that count the running threads up
--- to a time, and return the time that is unknown.
local function follow_cpus(opt, ours, has_prio, missed, credit)
  -- By CPU: the running thread (tid + 1; 0: unknown), the time it started to run, the end of the last loss.
  local current, since, known_from = array.new(MAX_CPU), array.new(MAX_CPU), array.new(MAX_CPU)
  local names = {} -- of the running threads by CPU, for --only-comm
  -- With --filter, the thread that runs between two matching switches is unknown.
  local only_comm, sees_all = opt.only_comm, not opt.filter
  local from_start = sees_all and not opt.input
  local leaves, enters = missed.leaves, missed.enters
  local checks_switches = sees_all and not has_prio -- a priority may change while a task runs
  local unknown = 0
  local function switch(ev)
    local cpu, pid = ev._cpu, ev.prev_pid
    if cpu < 0 or cpu >= MAX_CPU then return end
    if checks_switches then
      if ours.has(pid) then leaves(pid, ev._time, ev._cpu) end
      if ours.has(ev.next_pid) then enters(ev.next_pid, ev._time, ev._cpu) end
    end
    local from = since[cpu]
    if from < known_from[cpu] then
      if from > 0 then unknown = unknown + ev._time - from end
      current[cpu] = 0
    elseif from == 0 and from_start then
      current[cpu] = pid + 1 -- the first switch since the start
    end
    if current[cpu] == pid + 1 and (not has_prio or has_prio(ev.prev_prio)) then
      credit(cpu, pid, only_comm and ev.prev_comm, ev._time - from, 1)
    end
    current[cpu], since[cpu] = ev.next_pid + 1, ev._time
    if has_prio and not has_prio(ev.next_prio) then current[cpu] = 0 end
    if only_comm then names[cpu] = ev.next_comm end
  end
  local function moved(ev)
    local cpu = ev._cpu
    missed.moved(ev)
    ours.moved(ev)
    if cpu >= 0 and cpu < MAX_CPU and current[cpu] == ev.old_pid + 1 then current[cpu] = ev.pid + 1 end
  end
  local function lost(gap)
    for cpu = gap.cpu or 0, gap.cpu or MAX_CPU - 1 do
      if cpu < MAX_CPU then known_from[cpu] = math.max(known_from[cpu], gap.to) end
    end
    missed.forget(gap)
  end
  local function count_running(time)
    for cpu = 0, sees_all and MAX_CPU - 1 or -1 do
      if current[cpu] > 1 and since[cpu] >= known_from[cpu] and time > since[cpu] then
        credit(cpu, current[cpu] - 1, names[cpu], time - since[cpu], 0)
        since[cpu] = time
      end
    end
  end
  return { switch = switch, moved = moved, lost = lost, count_running = count_running,
    unknown = function() return sees_all and unknown or 0 end }
end

--- Follows the tasks of each CPU.
---@param opt table of oncpu
---@param session Session
---@param ours Threads
---@param prio? table the priorities of --prio
---@return CpuTime
function cpu_time.new(opt, session, ours, prio)
  local only_comm, has_prio = opt.only_comm, prio and prio.has
  local missed, leaves, enters, forget, moved = unreported.watch()
  local sums, credit = new_sums(ours, only_comm)
  local cpus = follow_cpus(opt, ours, has_prio,
    { leaves = leaves, enters = enters, forget = forget, moved = moved }, credit)
  local filter = prio and prio.text 'prev_prio' .. ' || ' .. prio.text 'next_prio' or opt.filter
  local event = session.event { 'sched:sched_switch' }
  filter = task_filter.all(filter, ours.filter('prev_pid', 'next_pid'))
  if filter then event:set { filter = filter } end
  local moves = session.id_changes()
  session.cpu_times { event = event, handler = cpus.switch, moves = moves, keys = sums.keys, sums = sums.ns,
    runs = sums.runs, longest = sums.longest, missed = missed, only_comm = only_comm, prio = has_prio,
    named = session.named_threads, duration = opt.duration }
  local function take(time)
    cpus.count_running(time)
    return take_sums(sums, only_comm, session.task_name)
  end
  local handlers = { [event] = cpus.switch, lost = cpus.lost }
  if moves then handlers[moves] = cpus.moved end
  return { by_thread = session.named_threads, handlers = handlers, missed = missed, take = take,
    unknown = cpus.unknown }
end

return cpu_time
