-- SPDX-License-Identifier: GPL-2.0-only
--- Analyzes pairs of events that have the same key, by default the time between them.
local relation = require 'lib.relation'

local IMPLEMENTATIONS = {
  delay = require 'lib.delay',
  pair = require 'lib.pairing',
  kmemprof = require 'lib.memprof',
  syscalls = require 'lib.syscalls',
}

local UNSUPPORTED = { -- options, by --impl
  pair = { 'than', 'only_than', 'lower', 'perins', 'variance', 'detail', 'heatmap' },
  kmemprof = { 'than', 'only_than', 'lower', 'perins', 'variance', 'detail', 'heatmap' },
  syscalls = { 'detail' },
}

local options = relation.pick('than', 'only_than', 'lower', 'perins', 'variance', 'detail', 'heatmap',
  'cycle')
options.impl = {
  type = 'enum',
  values = { 'delay', 'pair', 'kmemprof', 'syscalls' },
  default = 'delay',
  help = 'analysis of the pairs: their latency, whether all events are paired, or as kmemprof or syscalls do',
}

return {
  summary = 'Latency between events that share a key',
  description = [[
Each -e is a stage. For each event of a stage, measures the time since the event
of the previous stage with the same key. Events of one stage are alternatives.
The key is key= of the event, else -k, else the CPU or thread of the event.

An event with untraced belongs to no stage; --detail prints it between the
others, and with samekey it needs a key, too. An event with trigger ends an
interval. role=EXPR defines what an event can be: 1 the start of a pair, 2 the
end, 3 both. -vv prints all events as they arrive.]],
  examples = {
    { 'profscript multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ -i 1000',
      'time from wakeup to running' },
    { 'profscript multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid --than 9ms -- find /usr',
      'system call latency of a command, with each call of more than 9 ms' },
    { [[profscript multi-trace -e sched:sched_switch//role="(next_pid?1:0)|(prev_pid?2:0)"/ --cycle -i 1000]],
      'how long tasks run on a CPU' },
    { [[profscript multi-trace -e raw_syscalls:sys_enter//key=common_pid/ -e 'raw_syscalls:sys_exit//key=common_pid/,]]
        .. [[sched:sched_switch//untraced/,sched:sched_wakeup//untraced/' --than 20ms --detail=sametid]],
      'events of the thread during system calls of more than 20 ms' },
    { 'profscript multi-trace -e irq:softirq_entry -e irq:softirq_exit --perins -i 1000', 'softirq latency per CPU' },
    { 'profscript multi-trace -e irq:softirq_entry -e irq:softirq_exit --impl pair -i 1000',
      'whether each softirq that starts also ends' },
  },
  attributes = { 'size', unpack(relation.attributes) },
  options = options,

  metrics = { unmatched = { replaced = 'counter', unstarted = 'counter' } },

  start = function(opt, out, session)
    for _, name in ipairs(UNSUPPORTED[opt.impl] or {}) do
      if opt[name] then return nil, ('--%s does not work with --impl %s'):format(name:gsub('_', '-'), opt.impl) end
    end
    local found, message = relation.events(opt)
    if not found then return nil, message end
    return IMPLEMENTATIONS[opt.impl].run { name = 'multi-trace', opt = opt, out = out, session = session,
      events = found }
  end,
}
