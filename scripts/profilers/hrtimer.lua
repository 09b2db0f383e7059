-- SPDX-License-Identifier: GPL-2.0-only
--- Looks at each CPU at a fixed rate, and prints where it is when a condition on counts is true.
local condition = require 'lib.condition'

return {
  summary = 'Sample CPUs at a fixed rate where a condition on event counts is true',
  description = [[
The condition is a C expression over the counts of the events in the period that has passed, by their names or
alias=, and `period`, its length in ns. Any value other than 0 is true. -g adds the stack of that moment.

  $ profscript hrtimer -e sched:sched_switch,raw_syscalls:sys_enter -F 100 'sched_switch > 5' -N 1
  2026-11-22 10:45:09.029477                as  32551 [000] 6051.127901: hrtimer: cpu-clock 10032498 ns
      sched_switch 810
      sys_enter 1749]],
  examples = {
    { "profscript hrtimer -e sched:sched_switch -C 0 --period 50ms 'sched_switch == 0'", 'nothing was switched to' },
    { "profscript hrtimer -e irq:softirq_entry -F 1000 -g 'softirq_entry > 100'", 'where softirqs come in heaps' },
  },
  attributes = { 'alias', 'cpus', 'stack' },
  options = {
    exit_n = { help = 'stop after this many lines' },
    period = { type = 'duration', min = 1e4, help = 'look so often' },
  },
  positional = {
    { name = 'condition', type = 'string', help = 'C expression' },
  },

  start = function(opt, out, session)
    if not opt.period and not opt.freq then return nil, 'how often? give --period or -F' end
    if opt.period and opt.freq then return nil, 'either --period or -F can be given' end
    return condition.start('hrtimer', opt.condition, opt, out, session)
  end,
}
