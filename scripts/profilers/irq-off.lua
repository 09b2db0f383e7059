-- SPDX-License-Identifier: GPL-2.0-only
--- Long periods with interrupts off, detected by clock interrupts that arrive late.
local condition = require 'lib.engines.condition'

local THAN, PERIOD, SHORTEST = 20e6, 10e6, 1e4 -- ns

return {
  summary = 'Find code that keeps interrupts off for longer than a limit',
  description = [[
A clock interrupts each CPU every --period. If two of its interrupts are more
than --than apart, interrupts were off, or a hypervisor ran something else on
the CPU; the line has the time between them. The line and its stack (-g) show where interrupts were enabled again.

  $ profscript irq-off --period 1ms --than 2ms -g -N 1
  2026-11-22 10:45:12.205902        sched-pipe  32535 [000] 6054.304326: irq-off: cpu-clock 4018647 ns
      ffffffff8157bab0 perf_swevent_event+0x160 ([kernel.kallsyms])
      ffffffff8157beff perf_tp_event+0x28f ([kernel.kallsyms])
      ffffffff81417b06 perf_trace_sys_enter+0xf6 ([kernel.kallsyms])
      ffffffff81417d70 syscall_trace_enter+0x180 ([kernel.kallsyms])
      ffffffff821ef81a do_syscall_64+0x1fa ([kernel.kallsyms])
      ffffffff81000130 entry_SYSCALL_64_after_hwframe+0x76 ([kernel.kallsyms])
      00007f8733d16350 __GI___libc_write+0x10 (/usr/lib/x86_64-linux-gnu/libc.so.6)
      0000563645fb4999 Unknown (/usr/bin/perf)
      0000563646060cf1 Unknown (/usr/bin/perf)
      0000563645fb4183 Unknown (/usr/bin/perf)
      00007f8733c4524a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6)]],
  examples = {
    { 'profscript irq-off --period 1ms --than 5ms -g', 'interrupts off, or CPU stolen, for 5 ms' },
    { 'profscript irq-off -L 10000 -C 0-3', 'the same for 10 ms, on some CPUs' },
  },
  options = {
    exit_n = { help = 'stop after this many lines' },
    period = { type = 'duration', min = SHORTEST,
      help = 'interrupt each CPU every T (default 10ms, at most half of --than)' },
    precise = { type = 'flag', help = 'accepted for perf-prof command lines: times are exact to the ns anyway' },
    than = { type = 'duration', help = 'report if two interrupts are more than T apart (default 20ms)' },
    latency = { type = 'duration', short = 'L', unit = 'us', help = 'the same as --than, in us without a unit' },
  },

  start = function(opt, out, session)
    local than = opt.than or opt.latency or THAN
    local period = opt.period or math.max(SHORTEST, math.min(PERIOD, math.floor(than / 2)))
    if than <= period then return nil, '--than must be longer than --period' end
    return condition.start('irq-off', period, ('period > %dL'):format(than), opt, out, session)
  end,
}
