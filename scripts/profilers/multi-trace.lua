-- SPDX-License-Identifier: GPL-2.0-only
--- Measures the time from an event to the next one that has the same key, or what else one can learn
--- from two such events.
local relation = require 'lib.relation'

local IMPLEMENTATIONS = {
  delay = require 'lib.delay',
  pair = require 'lib.pairing',
  kmemprof = require 'lib.memprof',
  syscalls = require 'lib.syscalls',
}

-- Options that only some of them have a use for.
local UNUSED = {
  pair = { 'than', 'only_than', 'lower', 'perins', 'detail', 'heatmap' },
  kmemprof = { 'than', 'only_than', 'lower', 'perins', 'detail', 'heatmap' },
  syscalls = { 'detail' },
}

local options = relation.pick('than', 'only_than', 'lower', 'perins', 'detail', 'heatmap', 'cycle')
options.impl = {
  type = 'enum',
  values = { 'delay', 'pair', 'kmemprof', 'syscalls' },
  default = 'delay',
  help = 'what is learnt from two events: their latency, if they are paired, or what kmemprof or syscalls tell',
}

return {
  summary = 'Latency between events that share a key',
  description = [[
Each -e is a stage. For every event of a stage the time since the event of the stage before
with the same key is measured. Events of one stage are alternatives. The key is key= of the event,
else -k, else the CPU or thread that the event came from.

An event with untraced is in no stage, --detail shows it between the others, and with samekey needs
their key too; one with trigger ends an interval. role=EXPR says what an event may be: 1 the start of
a pair, 2 the end, 3 both. -vv prints all events, as they come.]],
  examples = {
    { 'profscript multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ -i 1000',
      'how long woken tasks wait for a CPU' },
    { 'profscript multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid --than 9ms -- find /usr',
      'system calls of a command, and which of them took more than 9 ms' },
    { [[profscript multi-trace -e sched:sched_switch//role="(next_pid?1:0)|(prev_pid?2:0)"/ --cycle -i 1000]],
      'how long tasks run on a CPU' },
    { [[profscript multi-trace -e raw_syscalls:sys_enter//key=common_pid/ -e 'raw_syscalls:sys_exit//key=common_pid/,]]
        .. [[sched:sched_switch//untraced/,sched:sched_wakeup//untraced/' --than 20ms --detail=sametid]],
      'what happened to the thread during system calls of more than 20 ms' },
    { 'profscript multi-trace -e irq:softirq_entry -e irq:softirq_exit --perins -i 1000', 'softirqs by CPU' },
    { 'profscript multi-trace -e irq:softirq_entry -e irq:softirq_exit --impl pair -i 1000',
      'whether each softirq that begins also ends' },
  },
  attributes = { 'size', unpack(relation.attributes) },
  options = options,

  start = function(opt, out, session)
    for _, name in ipairs(UNUSED[opt.impl] or {}) do
      if opt[name] then return nil, ('--%s has no meaning with --impl %s'):format(name:gsub('_', '-'), opt.impl) end
    end
    local found, message = relation.events(opt)
    if not found then return nil, message end
    return IMPLEMENTATIONS[opt.impl].run { name = 'multi-trace', opt = opt, out = out, session = session,
      events = found }
  end,
}
