-- SPDX-License-Identifier: GPL-2.0-only
--- The time that tasks spend in each state. Longer than most profilers because the selected tasks and states decide
--- which events are opened and how the kernel filters them.
local array = require 'lib.array'
local flamegraph = require 'lib.flamegraph'
local sums = require 'lib.task_state_sums'
local task_filter = require 'lib.task_filter'
local task_states = require 'lib.task_states'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local NAMES, ON_CPU, QUEUED = task_states.NAMES, task_states.ON_CPU, task_states.QUEUED
local RUNNABLE = #NAMES + 1 -- at the start of the run: R or RD, which the next switch tells
-- By prev_state. Bit 256 is set for preempted tasks. Older kernels set 2 and 128 for a sleep in D that does not
-- count as load. Dead tasks have no state.
local BY_PREV_STATE = { [0] = QUEUED, [1] = 2, [2] = 3, [4] = 4, [8] = 5, [128] = 6, [130] = 3, [64] = 7 }

local state_of = array.new(256)
for bits, state in pairs(BY_PREV_STATE) do state_of[bits] = state end

--- Returns a function that adds the filters for the selected tasks and states to an event.
---@param names? TaskFilter
---@return fun(event: string, field: string, with_states: boolean): string selector of the event
---@return boolean only_sleep only some states are selected
local function selection(opt, names, ours)
  local states = {}
  if opt.interruptible then states[1] = 'prev_state == 1' end
  if opt.uninterruptible then states[#states + 1] = 'prev_state == 2 || prev_state == 130' end
  local only = #states > 0 and table.concat(states, ' || ') or nil
  return function(event, field, with_states)
    return task_filter.select(event, with_states and only or nil,
      names and names.text(field .. 'comm') or ours.filter(field .. 'pid'))
  end, only ~= nil
end

return {
  summary = 'Time that tasks run, wait for a CPU and sleep, by state',
  description = [[
The states of a task are:

  R   running on a CPU
  RD  runnable, waiting for a CPU
  S   interruptible sleep
  D   uninterruptible sleep
  T   stopped
  t   traced
  I   idle kernel thread
  P   parked

A state is counted when it ends. States of threads selected with -p, -t or a
workload are also counted at the end of the run. New threads and children of -p
and of a workload are followed. -S and -D measure only these sleeps and need
fewer events. If possible, a BPF program adds up the times, and sends what --than
prints; with -C, --cgroups, --filter, -g, --flame-graph or -N, each switch and
wakeup is read as an event.

  $ profscript task-state -q -m 1024 -- find /usr -name x.y
  2026-11-22 11:29:08.800323
  St    calls        total(us)      min(us)      p50(us)      p95(us)      p99(us)      max(us)
  -- -------- ---------------- ------------ ------------ ------------ ------------ ------------
  R      7679       592794.211       17.336       52.480      130.560      569.344     9024.717
  D      7623       580078.631        4.426       59.648      185.344      280.576     4124.559
  RD     7647       212692.427        1.442        3.600       16.512      626.688     4803.315]],
  examples = {
    { 'profscript task-state --perins -- ls -lR /usr/share', 'where a command spends its time' },
    { 'profscript task-state -p 1 -i 1000', 'a process, every second' },
    { 'profscript task-state -D --than 20ms -g', 'long sleeps in D: the stack, and who wakes the task' },
    { 'profscript task-state -p 1 --flame-graph off.svg', 'off-CPU flame graph of a process' },
    { "profscript task-state --filter 'java,python*' -S --perins", 'sleep times of tasks with these names' },
  },
  everywhere = true,
  unsupported = { 'event' },
  optional = {
    ['sched:sched_wakeup'] = 'sleeps last until the task runs, with the wait for a CPU; with -S or -D there are none',
    ['sched:sched_wakeup_new'] = 'the first wait of each new task is missing',
  },
  options = flamegraph.options {
    filter = { own = true, help = 'only tasks with these names; * and ? are wildcards', argument = 'NAMES' },
    call_graph = { help = 'record the stacks of the events that --than prints' },
    user_callchain = {},
    kernel_callchain = {},
    interruptible = { type = 'flag', short = 'S', either = true,
      help = 'measure only sleep in S; --no-...: all states but S' },
    uninterruptible = { type = 'flag', short = 'D', help = 'measure only sleep in D' },
    than = { type = 'duration', help = 'print the events around states longer than T, except R, and count them' },
    perins = { type = 'flag', help = 'print rows per thread' },
    mmap_pages = { default = 512 },
    ptrace = { type = 'flag', help = 'go on until all that a workload starts has exited, daemons too' },
  },

  start = function(opt, out, session)
    local function warn(missed)
      if not session.supports 'sched:sched_wakeup' then missed.wakeups = 0 end -- none is expected
      unreported.warn(missed, out, 'task-state', 'the time before them is not counted',
        (opt.interruptible or opt.uninterruptible) and 'these sleeps are not counted'
          or 'these sleeps are counted until the task ran')
    end
    local in_kernel = sums.handlers(opt, out, session, warn)
    if in_kernel then return in_kernel end

    local ours = threads.new(session, opt, not (opt.than or opt.filter))
    local names, message
    if opt.filter then
      names, message = task_filter.names(opt.filter)
      if not names then return nil, message end
    end
    local select_tasks, only_sleep = selection(opt, names, ours)
    local is_ours, slept = ours.has, task_states.slept(opt)
    local states, since = array.new(threads.MAX), array.new(threads.MAX)
    local known_from, dropped = 0, 0 -- the end of the last loss: states that began before it are unknown
    local missed = unreported.new()
    local times = task_states.table(opt, out, session)
    local hists, row = times.hists, times.row
    local than, all_but_s = opt.than or math.huge, opt.interruptible == false
    local pass = opt.than and session.gate()
    local started = opt.than and not pass and session.slots(threads.MAX)
    local print_wait = pass and function(_, _, _, ev) return ev and pass(ev) end
      or opt.than and require 'lib.task_state_waits'.printer(out, session, started, NAMES)

    local flame = flamegraph.new(opt, session, out, { title = 'time off the CPU', unit = 'ns' })
    local stacks = array.new(threads.MAX) -- by task, of its last switch out
    local sample = { _stack = 0, _comm = '', _pid = 0, _tid = 0, _cpu = 0 }
    local function draw(pid, ns, ev)
      sample._stack, sample._comm, sample._pid = stacks[pid], session.task_name(pid), pid
      sample._tid, sample._cpu = pid, ev and ev._cpu or -1
      flame:add(sample, ns)
    end

    local slice = session.slices { by = 'tid', names = NAMES }

    --- Counts a state of the task that has ended.
    local function add(pid, state, ns, ev)
      if all_but_s and state == 2 then return end
      if slice then slice(state, pid, since[pid], since[pid] + ns) end
      hists:add(row(pid, state), ns)
      if flame and state ~= ON_CPU and state ~= QUEUED then draw(pid, ns, ev) end
      if ns > than and state ~= ON_CPU then print_wait(pid, state, ns, ev) end
    end

    --- Returns the current state of the task, 0 if it is unknown.
    local function current(pid)
      local state = states[pid]
      if state ~= 0 and since[pid] < known_from then
        dropped = dropped + 1
        states[pid] = 0
        return 0
      end
      return state
    end

    local function set_state(pid, state, ev)
      states[pid], since[pid] = state, ev._time
      if started then started:put(pid, ev) end
    end

    local function leaves(pid, bits, ev)
      if not is_ours(pid) then return end
      local state = current(pid)
      if state == ON_CPU or state == RUNNABLE then
        add(pid, ON_CPU, ev._time - since[pid], ev)
      elseif state ~= 0 and not only_sleep then -- the switch to it was not reported
        missed.switches = missed.switches + 1
      elseif state ~= 0 then
        missed.wakeups = missed.wakeups + 1
      end
      set_state(pid, state_of[bits % 256], ev)
      if flame then stacks[pid] = ev._stack end
    end
    local function enters(pid, ev)
      if not is_ours(pid) then return end
      local state = current(pid)
      if state == QUEUED or state == RUNNABLE then
        add(pid, QUEUED, ev._time - since[pid], ev)
      elseif state == ON_CPU then
        missed.switches = missed.switches + 1
      elseif state ~= 0 then
        missed.wakeups = missed.wakeups + 1
        add(pid, state, ev._time - since[pid], ev)
      end
      set_state(pid, ON_CPU, ev)
    end
    local function wakeup(ev)
      local pid = ev.pid
      if not is_ours(pid) then return end
      local state = current(pid)
      if state ~= ON_CPU and state ~= QUEUED then
        if state ~= 0 and state ~= RUNNABLE then add(pid, state, ev._time - since[pid], ev) end
        set_state(pid, only_sleep and 0 or QUEUED, ev)
      end
    end
    local function wakeup_new(ev)
      local pid = ev.pid
      ours.born(ev)
      if is_ours(pid) then set_state(pid, only_sleep and 0 or QUEUED, ev) end
    end

    -- With -S or -D a task that was woken is not seen to run, only to end.
    local function ends(ev)
      local pid = ev._tid
      if is_ours(pid) and current(pid) ~= 0 then
        missed.wakeups = missed.wakeups + 1
        states[pid] = 0
      end
    end

    -- Threads selected with -p, -t or a workload count from the start of the run to its end, even if their state
    -- neither begins nor ends in between.
    local function read_states(tids)
      task_states.of_threads(tids, function(tid, state, comm)
        if names and not names.has(comm) or slept and not slept[state] then return end
        states[tid] = state == ON_CPU and RUNNABLE or state
      end)
    end
    local function count_current(time)
      for pid = 1, threads.MAX - 1 do
        local state = states[pid]
        if state ~= 0 and state ~= RUNNABLE and since[pid] >= known_from and time > since[pid]
          and task_states.lasts(pid, state, missed) then
          add(pid, state, time - since[pid])
        end
      end
    end

    local handlers = {
      [select_tasks('sched:sched_wakeup', '', false)] = wakeup,
      [select_tasks('sched:sched_wakeup_new', '', false)] = wakeup_new,
    }
    local switch = 'sched:sched_switch'
    local outgoing, incoming = select_tasks(switch, 'prev_', true), select_tasks(switch, 'next_', false)
    if outgoing ~= switch then
      handlers[outgoing] = function(ev)
        leaves(ev.prev_pid, tonumber(ev:u64 'prev_state'), ev)
      end
      if not only_sleep then
        handlers[incoming] = function(ev) enters(ev.next_pid, ev) end
      end
    else
      handlers[switch] = function(ev)
        leaves(ev.prev_pid, tonumber(ev:u64 'prev_state'), ev)
        enters(ev.next_pid, ev)
      end
    end

    if only_sleep then handlers.exit = ends end
    handlers.lost = function(gap) known_from = math.max(known_from, gap.to) end
    function handlers.interval() times.print() end
    handlers.stop = function(time)
      if session.named_threads then count_current(time) end
      times.print()
      warn(missed)
      if dropped > 0 then
        out:warn(('task-state: dropped %d states: the events that end them may be lost'):format(dropped))
      end
    end
    return ours.follow(flamegraph.follow(flame, handlers), read_states)
  end,
}
