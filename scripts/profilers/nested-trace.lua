-- SPDX-License-Identifier: GPL-2.0-only
--- Functions that call each other, each given by an event where it begins and one where it ends.
local detail = require 'lib.detail'
local nested = require 'lib.nested'
local relation = require 'lib.relation'

local options = relation.pick('than', 'perins', 'detail', 'heatmap')
options.impl = {
  type = 'enum',
  values = { 'call', 'call-delay', 'delay' },
  default = 'call-delay',
  help = 'the tree of calls, the same with their times, or the times of each function alone',
}

--- The pair of events of each -e, and the untraced ones.
---@return { functions: Event[][], others: Event[], key?: string }? found
---@return string? message
local function sort_events(opt)
  local found, keyed, keyless = { functions = {}, others = {} }, nil, nil
  for i, group in ipairs(opt.event) do
    local traced = {}
    for _, event in ipairs(group) do
      table.insert(event.attrs.untraced and found.others or traced, event)
    end
    if #traced ~= 2 then
      return nil, ('-e number %d: a function is two events, where it begins and where it ends, not %d')
        :format(i, #traced)
    end
    for _, event in ipairs(traced) do
      if event.attrs.key or opt.key then keyed = event else keyless = event end
    end
    found.functions[i] = traced
  end
  if #found.functions == 0 then return nil, 'name a function with -e BEGIN,END' end
  if keyed and keyless then
    return nil, ('%s has a key and %s has none: give all events one, with key= or -k')
      :format(keyed.name, keyless.name)
  end
  found.key = keyed and (keyed.attrs.key or opt.key)
  return found
end

return {
  summary = 'Functions that call each other: call tree and times',
  description = [[
Each -e is a function: the event where it begins, then the one where it ends. What begins before another
has ended is called by that. The calls of a CPU or thread, or with the same key, belong together. R marks
a function that calls itself, directly or not: its calls count where it was first called. self is the
time of a function without that of those that it calls.]],
  examples = {
    { 'profscript nested-trace -e irq:softirq_entry,irq:softirq_exit'
        .. ' -e timer:timer_expire_entry,timer:timer_expire_exit -i 1000', 'timers within softirqs' },
    { 'profscript nested-trace -e irq:softirq_entry,irq:softirq_exit'
        .. ' -e timer:timer_expire_entry,timer:timer_expire_exit --than 1ms --detail=samecpu',
      'all that happened within softirqs of more than 1 ms' },
    { [[profscript nested-trace --impl call -e 'uprobe:main@"./program",uretprobe:main@"./program"']]
        .. [[ -e 'uprobe:f@"./program",uretprobe:f@"./program"' -- ./program]],
      'which functions of a program call which' },
  },
  attributes = { 'key', 'printkey', 'untraced' },
  options = options,

  start = function(opt, out, session)
    local found, message = sort_events(opt)
    if not found then return nil, message end
    if opt.perins and opt.impl ~= 'delay' then return nil, '--perins is for --impl delay' end
    local details
    details, message = detail.of_options('nested-trace', opt, found.others, opt.than ~= nil, out)
    if message then return nil, message end
    return nested.run({ name = 'nested-trace', opt = opt, out = out, session = session, functions = found.functions,
      others = found.others, key = found.key }, details)
  end,
}
