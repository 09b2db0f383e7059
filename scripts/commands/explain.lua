-- SPDX-License-Identifier: GPL-2.0-only
--- Explains where the work of a script is done: bindings/init.lua runs the script instead of this one.
return {
  summary = 'Say what of a script runs in the kernel, and why the rest does not',
  description = [[
Prints what a dry run prints: the events, their filters and the target. For each
event it adds why it is not counted in the kernel, or not captured by a BPF
program, and for each line of the handlers whether it runs in the kernel or in
Lua. Nothing is traced. The options are those of the script, because they
change the answer.

A handler counts in the kernel if it only adds to lib.aggregate, lib.counter,
lib.hist or numbers, as in `total = total + 1`, possibly all under one
condition, and nothing else but `interval` and `stop` looks at them.]],
  examples = {
    { 'profscript explain ./wakeups.lua', 'a script of your own' },
    { "profscript explain top -e sched:sched_switch -k next_pid -i 1s", 'a profiler with its options' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  positional = {
    { name = 'script', required = true, help = 'script or profiler, followed by its options' },
  },
  start = function() return nil, 'explain comes before the script: profscript explain SCRIPT [options]' end,
}
