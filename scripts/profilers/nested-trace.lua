-- SPDX-License-Identifier: GPL-2.0-only
--- Call tree and times of nested functions, each given by two events: its entry and its exit.
local detail = require 'lib.detail'
local nested = require 'lib.engines.nested'
local relation = require 'lib.relation'

local options = relation.pick('than', 'perins', 'variance', 'detail', 'heatmap')
options.impl = {
  type = 'enum',
  values = { 'call', 'call-delay', 'delay' },
  default = 'call-delay',
  help = 'print the call tree, the call tree with times, or a table of times by function',
}

return {
  summary = 'Call tree and times of nested functions',
  description = [[
Each -e is a function: its entry event, then its exit event. A function that is
entered while another one runs is called by it. Calls are nested per CPU or
thread, or per key if there is one. R marks recursive functions, direct or
indirect: their calls count where the function was first called. self is the
time of a function without the functions it calls.]],
  examples = {
    { 'profscript nested-trace -e irq:softirq_entry,irq:softirq_exit'
        .. ' -e timer:timer_expire_entry,timer:timer_expire_exit -i 1000', 'timers within softirqs' },
    { 'profscript nested-trace -e irq:softirq_entry,irq:softirq_exit'
        .. ' -e timer:timer_expire_entry,timer:timer_expire_exit --than 1ms --detail=samecpu',
      'what happened on the CPU during softirqs of more than 1 ms' },
    { [[profscript nested-trace --impl call -e 'uprobe:main@"./program",uretprobe:main@"./program"']]
        .. [[ -e 'uprobe:f@"./program",uretprobe:f@"./program"' -- ./program]],
      'call tree of a program' },
  },
  attributes = { 'key', 'printkey', 'untraced' },
  options = options,

  metrics = { call = { calls = 'counter', depth = 'none', recursive = 'none' } },

  start = function(opt, out, session)
    local found, message = nested.events(opt)
    if not found then return nil, message end
    if opt.perins and opt.impl ~= 'delay' then return nil, '--perins is for --impl delay' end
    if opt.variance and opt.impl == 'call' then return nil, '--variance is not for --impl call' end
    local details
    details, message = detail.of_options('nested-trace', opt, found.others, opt.than ~= nil, out)
    if message then return nil, message end
    return nested.run({ name = 'nested-trace', opt = opt, out = out, session = session, events = found }, details)
  end,
}
