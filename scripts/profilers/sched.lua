-- SPDX-License-Identifier: GPL-2.0-only
--- Who ran, who waited for a CPU and behind whom, and how long the run queues were.
local report = require 'lib.engines.sched.report'
local tasks = require 'lib.engines.sched.tasks'
local threads = require 'lib.threads'

return {
  summary = 'Who waits for a CPU, and behind whom; lengths of the run queues',
  description = [[
Prints for each task how long it ran, how often and how long it waited for a CPU,
and the longest wait with its end; and for each CPU how much of the time it was busy,
how many tasks waited for it on average and at most, and how much of the time it was
idle while tasks waited for other CPUs (unclaimed). A task waits from its wakeup, or
from when it is switched out while runnable, until it runs.

--than T also prints each wait that is longer, with the tasks that ran meanwhile on
the CPUs for which it waited. --runs prints each run of a task: how long the task was
off its CPU before, in which state, how much of this time it waited for a CPU, and how
long it ran then, as perf sched timehist.

Where switches are missing, there is a hole: "(not known)" ran then, and hole% is the
part of a CPU's time. --export draws who ran and who waited on each CPU.]],
  examples = {
    { 'profscript sched -i 1s', 'tasks and CPUs, every second' },
    { 'profscript sched -p 1 --than 5ms', 'behind whom threads of a process wait' },
    { 'profscript sched --runs -- make', 'each run of the tasks of a command' },
    { 'profscript sched --duration 5 --export t.html', 'a timeline; t.pftrace: for Perfetto' },
  },
  everywhere = true,
  unsupported = { 'event', 'filter' },
  optional = {
    ['sched:sched_wakeup_new'] = 'the first wait of each new task is missing',
    ['sched:sched_migrate_task'] = 'a task that waits and is migrated is counted at its first CPU',
  },
  options = {
    than = { type = 'duration', help = 'also print waits longer than T, with who ran meanwhile' },
    runs = { type = 'flag', help = 'also print each run' },
    perins = { type = 'flag', help = 'print rows per thread' },
    top = { type = 'integer', default = 20, min = 1, help = 'tasks to print' },
    mmap_pages = { default = 512 },
  },

  start = function(opt, out, session)
    local ours, printed = threads.new(session, opt), report.new(opt, out, session)
    local switch = session.event { 'sched:sched_switch' }
    local followed = tasks.new {
      chosen = ours.has,
      preempted = session.preempted_state(switch),
      than = opt.than or math.huge,
      on_wait = function(...) printed:wait(...) end,
      on_run = opt.runs and function(run) printed:run(run) end,
    }
    printed:of(followed)
    -- Recordings of perf sched record have sched_waking instead.
    local wakeup = session.supports 'sched:sched_wakeup' and 'sched:sched_wakeup' or 'sched:sched_waking'
    return ours.follow {
      [switch] = followed.switch,
      [wakeup] = followed.wakeup,
      ['sched:sched_wakeup_new'] = function(ev)
        ours.born(ev)
        followed.wakeup(ev)
      end,
      ['sched:sched_migrate_task'] = followed.migrate,
      comm = followed.renamed,
      fork = followed.renamed,
      lost = followed.lost,
      interval = function(time) printed:print(time) end,
      stop = function(time) printed:finish(time) end,
    }
  end,
}
