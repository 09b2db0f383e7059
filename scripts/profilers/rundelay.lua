-- SPDX-License-Identifier: GPL-2.0-only
--- Runqueue latency: the time that runnable tasks wait for a CPU.
local relation = require 'lib.relation'
local run_queue = require 'lib.engines.run_queue'

local options = relation.pick('than', 'only_than', 'lower', 'perins', 'variance', 'detail', 'heatmap')
options.event = {
  default = { 'sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch', 'sched:sched_switch' },
}
options.filter = { own = true, argument = 'COMM,...', needs = { 'filter', 'both_switches' },
  help = 'only tasks with these names; * and ? are wildcards' }

return {
  summary = 'Runqueue latency: time that runnable tasks wait for a CPU',
  description = [[
Measures the time from when a task becomes runnable until it runs: from its
wakeup, or from when it is switched out while runnable. Without -p, -t, a
workload or --filter, measures all tasks.

-e is optional; give it to add attributes, or untraced events for --detail. Keys
and filters of the events are set in any case. --detail=samecpu shows the events
of the CPU that the task waits for, even if it is migrated.]],
  examples = {
    { 'profscript rundelay -i 1000', 'all tasks, every second' },
    { 'profscript rundelay --perins --filter "python*,java" -i 1000', 'each thread with these names' },
    { 'profscript rundelay -p 1 --than 4ms --detail=samecpu', 'what ran while threads of process 1 waited' },
    { [[profscript rundelay -e 'sched:sched_wakeup*,sched:sched_switch' -e 'sched:sched_switch,]]
        .. [[sched:sched_migrate_task//untraced/stack/' --than 20ms --detail=samecpu]], 'with stacks of migrations' },
  },
  attributes = relation.attributes,
  optional = {
    ['sched:sched_wakeup'] = 'waits that begin with a wakeup are missing',
    ['sched:sched_wakeup_new'] = 'the first wait of each new task is missing',
  },
  options = options,
  everywhere = true,

  start = function(opt, out, session)
    local waits, message = run_queue.new(opt, session)
    if not waits then return nil, message end
    return run_queue.run(waits, opt, out, session)
  end,
}
