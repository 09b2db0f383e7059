-- SPDX-License-Identifier: GPL-2.0-only
--- Samples each CPU at a fixed rate, and prints the samples for which a condition on event counts is true.
local condition = require 'lib.engines.condition'

return {
  summary = 'Sample CPUs at a fixed rate if a condition on counts is true',
  description = [[
The condition is a C expression of the event counts in the period before the
sample, by event name or alias=, and of `period`, the length of that period in
ns. Any value other than 0 is true. -g adds the stack.

A period can be a multiple of the one asked for: some kernels take no sample
while a CPU is idle. The counts are those of the whole period.

  $ profscript hrtimer -e sched:sched_switch,raw_syscalls:sys_enter -F 100 'sched_switch > 5' -N 1
  2026-11-22 10:45:09.029477                as  32551 [000] 6051.127901: hrtimer: cpu-clock 10032498 ns
      sched_switch 810
      sys_enter 1749]],
  examples = {
    { "profscript hrtimer -e sched:sched_switch -C 0 --period 50ms 'sched_switch == 0'",
      '50 ms without a context switch' },
    { "profscript hrtimer -e irq:softirq_entry -F 1000 -g 'softirq_entry > 100'", 'stacks during bursts of softirqs' },
  },
  attributes = { 'alias', 'cpus', 'stack' },
  options = {
    exit_n = { help = 'stop after this many lines' },
    period = { type = 'duration', min = 1e4, help = 'sample each CPU every T' },
  },
  positional = {
    { name = 'condition', type = 'string', help = 'C expression of event counts' },
  },

  start = function(opt, out, session)
    if not opt.period and not opt.freq then return nil, 'set the sampling rate with --period or -F' end
    if opt.period and opt.freq then return nil, '--period and -F are mutually exclusive' end
    local period = opt.period or math.floor(1e9 / opt.freq + 0.5)
    return condition.start('hrtimer', period, opt.condition, opt, out, session)
  end,
}
