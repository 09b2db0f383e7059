-- SPDX-License-Identifier: GPL-2.0-only
--- The time that tasks spend in each state. Longer than most profilers because the selected tasks and states decide
--- which events are opened and how the kernel filters them.
local array = require 'lib.array'
local flamegraph = require 'lib.flamegraph'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local task_filter = require 'lib.task_filter'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local MAX_ROWS = 65536

-- States, in the order of the table; 0 is unknown.
local ON_CPU, QUEUED = 1, 8
local NAMES = { 'R', 'S', 'D', 'T', 't', 'I', 'P', 'RD' }
local STATES = #NAMES
local ORDER = { 'time', 'pid', 'comm', 'state', 'ns' } -- of a slow state
local RUNNABLE = STATES + 1 -- at the start of the run: R or RD, which the next switch tells
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
fewer events.

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
    local ours = threads.new(session, opt, not (opt.than or opt.filter))
    local names, message
    if opt.filter then
      names, message = task_filter.names(opt.filter)
      if not names then return nil, message end
    end
    local select_tasks, only_sleep = selection(opt, names, ours)
    local is_ours, slept = ours.has, { [2] = opt.interruptible, [3] = opt.uninterruptible }
    local states, since = array.new(threads.MAX), array.new(threads.MAX)
    local known_from, dropped = 0, 0 -- the end of the last loss: states that began before it are unknown
    local missed = unreported.new()
    local keys = intern.new(1, MAX_ROWS)
    local hists = hist.set((MAX_ROWS + 1) * STATES, opt.than)
    local than, perins, all_but_s = opt.than or math.huge, opt.perins, opt.interruptible == false
    local pass = opt.than and session.gate()
    local started = opt.than and not pass and session.slots(threads.MAX)

    local function print_state(pid, state, ns, ev)
      if pass then return ev and pass(ev) end
      local word, name = state == QUEUED and 'RUNDELAY' or 'WAIT', session.task_name(pid)
      if out.format == 'text' then
        out:stamp(nil, (' task-state: %d %s %s %.3f ms'):format(pid, name, word, ns / 1e6))
      else
        local time = out:seconds(ev and ev._time or session.now())
        out:record('task-state', { time = time, pid = pid, comm = name, state = NAMES[state], ns = ns }, ORDER)
      end
      local from = started:get(pid)
      if from then out:print_event(from) end
      if ev then out:print_event(ev) end
    end

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
      local row = state - 1
      if perins then row = keys.id(pid) * STATES + row end
      hists:add(row, ns)
      if flame and state ~= ON_CPU and state ~= QUEUED then draw(pid, ns, ev) end
      if ns > than and state ~= ON_CPU then print_state(pid, state, ns, ev) end
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

    local function read_stat(tid)
      local file = io.open(('/proc/%d/stat'):format(tid))
      local comm, letter = (file and file:read '*a' or ''):match '%((.*)%) (%a)'
      if file then file:close() end
      return comm, letter
    end
    -- Threads selected with -p, -t or a workload count from the start of the run to its end, even if their state
    -- neither begins nor ends in between.
    local function read_states(tids)
      for _, tid in ipairs(tids) do
        local comm, letter = read_stat(tid)
        if comm and names and not names.has(comm) then letter = nil end
        if letter == 'R' and not only_sleep then states[tid] = RUNNABLE end
        for state = 2, QUEUED - 1 do
          if NAMES[state] == letter and (not only_sleep or slept[state]) then states[tid] = state end
        end
      end
    end
    -- Where wakeups are missing, a task may have left the state in which it was last seen.
    local function count_current(time)
      for pid = 1, threads.MAX - 1 do
        local state = states[pid]
        if state ~= 0 and state ~= RUNNABLE and since[pid] >= known_from and time > since[pid] then
          local doubtful = missed.wakeups + missed.switches > 0 and state ~= ON_CPU and state ~= QUEUED
          if not doubtful or select(2, read_stat(pid)) == NAMES[state] then
            add(pid, state, time - since[pid])
          else
            missed.wakeups = missed.wakeups + 1
          end
        end
      end
    end

    local handlers = { [select_tasks('sched:sched_wakeup', '', false)] = wakeup }
    if session.supports 'sched:sched_wakeup_new' then -- a recording may lack it
      handlers[select_tasks('sched:sched_wakeup_new', '', false)] = wakeup_new
    end
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

    local spec = tables.new('task-state', tables.latency_columns(opt.than ~= nil, {
      { name = 'thread', width = 6, align = 'right', show = perins },
      { name = 'comm', width = 16, align = 'left', show = perins },
      { name = 'state', title = 'St', width = 2, align = 'left' },
    }))
    if opt.than then tables.record('task-state', ORDER) end

    local function add_rows(rows, id, pid)
      for i, name in ipairs(NAMES) do
        local times = hists:get(id * STATES + i - 1)
        if times and times:stats().count > 0 then
          local row = tables.latency_row({ thread = pid or '(other)', state = name, order = i }, times)
          row.comm = pid and perins and session.task_name(pid) or ''
          rows[#rows + 1] = row
        end
      end
    end
    local function print_and_clear()
      local rows, pids = {}, {}
      if perins then
        for id = 0, keys:count() - 1 do pids[id + 1] = { id = id, pid = keys:part(id, 1) } end
        table.sort(pids, function(a, b) return a.pid < b.pid end)
        for _, one in ipairs(pids) do add_rows(rows, one.id, one.pid) end
        if keys:overflow() > 0 then add_rows(rows, keys.max) end
      else
        add_rows(rows, 0)
      end
      out:table(spec, rows)
      hists:clear()
      keys:clear()
    end

    if only_sleep then handlers.exit = ends end
    handlers.lost = function(gap) known_from = math.max(known_from, gap.to) end
    handlers.interval = print_and_clear
    handlers.stop = function(time)
      if session.named_threads then count_current(time) end
      print_and_clear()
      unreported.warn(missed, out, 'task-state', 'the time before them is not counted',
        only_sleep and 'these sleeps are not counted' or 'these sleeps are counted until the task ran')
      if dropped > 0 then
        out:warn(('task-state: dropped %d states: the events that end them may be lost'):format(dropped))
      end
    end
    return ours.follow(flamegraph.follow(flame, handlers), read_states)
  end,
}
