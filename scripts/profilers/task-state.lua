-- SPDX-License-Identifier: GPL-2.0-only
--- The time that tasks spend in each state: lib.engines.task_state follows them from event to event.
local flamegraph = require 'lib.flamegraph'
local tables = require 'lib.table'
local task_filter = require 'lib.task_filter'
local task_state = require 'lib.engines.task_state'
local task_states = require 'lib.task_states'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

return {
  summary = 'Time that tasks run, wait for a CPU and sleep, by state',
  description = [[
The states of a task are:

  R   running on a CPU          RD  runnable, waiting for a CPU
  S   interruptible sleep       D   uninterruptible sleep
  T   stopped                   t   traced
  I   idle kernel thread        P   parked

A state is counted when it ends; states of the threads of -p, -t, a workload or
--cgroups also at the end of the run. A BPF program adds up the times, unless -C,
--filter, -g, --flame-graph or -N need each switch and wakeup as an event.

  $ profscript task-state -q -m 1024 -- find /usr -name x.y
  2026-11-22 11:29:08.800323
  St    calls    total      min      p50      p95      p99      max
  -- -------- -------- -------- -------- -------- -------- --------
  R      7679   593 ms  17.3 us  52.5 us   131 us   569 us  9.02 ms
  D      7623   580 ms  4.43 us  59.6 us   185 us   281 us  4.12 ms
  RD     7647   213 ms  1.44 us  3.60 us  16.5 us   627 us  4.80 ms]],
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
    variance = tables.variance_option,
    mmap_pages = { default = 512 },
    ptrace = { type = 'flag', help = 'go on until all that a workload starts has exited' },
  },

  start = function(opt, out, session)
    local names, message
    if opt.filter then
      names, message = task_filter.names(opt.filter)
      if not names then return nil, message end
    end
    local ours, slept = threads.new(session, opt, not (opt.than or opt.filter)), task_states.slept(opt)
    local times = task_states.table(opt, out, session)
    local tracked = task_state.new { opt = opt, out = out, session = session, ours = ours, names = names,
      times = times }
    local handlers = tracked.handlers

    -- Threads selected with -p, -t or a workload count from the start of the run to its end, even if their state
    -- neither begins nor ends in between.
    local function read_states(tids)
      task_states.of_threads(tids, function(tid, state, comm)
        if names and not names.has(comm) or slept and not slept[state] then return end
        tracked.set_first(tid, state)
      end)
    end
    function handlers.draw() times.print(tracked.names()) end
    function handlers.interval()
      times.print(tracked.names())
      times.clear()
    end
    function handlers.stop(time)
      tracked.count_current(time)
      times.print(tracked.names())
      if not session.supports 'sched:sched_wakeup' then tracked.missed.wakeups = 0 end -- none is expected
      unreported.warn(tracked.missed, out, 'task-state', 'the time before them is not counted',
        slept and 'these sleeps are not counted' or 'these sleeps are counted until the task ran')
      local dropped = tracked.dropped()
      if dropped > 0 then
        out:warn(('task-state: dropped %d states: the events that end them may be lost'):format(dropped))
      end
    end
    return ours.follow(flamegraph.follow(tracked.flame, handlers), read_states, not names)
  end,
}
