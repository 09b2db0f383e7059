-- SPDX-License-Identifier: GPL-2.0-only
--- How long tasks that could run wait for a CPU.
local delay = require 'lib.delay'
local relation = require 'lib.relation'
local task_filter = require 'lib.task_filter'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local options = relation.pick('than', 'only_than', 'lower', 'perins', 'detail', 'heatmap')
options.event = {
  default = { 'sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch', 'sched:sched_switch' },
}
options.filter = { own = true, argument = 'COMM,...', help = 'only tasks of these names, which may hold * and ?' }

-- What each event must be there for once, in the stage it must be of, and the fields that name its task.
local ROLES = {
  { ['sched:sched_wakeup'] = '', ['sched:sched_wakeup_new'] = '', ['sched:sched_switch'] = 'prev_' },
  { ['sched:sched_switch'] = 'next_' },
}

--- Sets the keys and filters of the four events.
---@param names? TaskFilter
local function set_up(found, names, ours, session)
  local seen = 0
  for i, stage in ipairs(found.stages) do
    for _, event in ipairs(stage) do
      local prefix = ROLES[i] and ROLES[i][event.name]
      if not prefix then return nil, ('%s of -e number %d takes no part: add untraced'):format(event.name, i) end
      seen = seen + 1
      local tasks, stopped = names and names.text(prefix .. 'comm') or ours.filter(prefix .. 'pid'), nil
      if prefix == 'prev_' then
        -- It could go on but does not run: because it yields or its time is over, or because it is preempted.
        stopped = ('prev_state == 0 || prev_state == %d'):format(session.preempted_state(event))
        tasks = tasks or 'prev_pid > 0'
      end
      event:set { key = prefix .. 'pid', filter = task_filter.all(tasks, stopped) }
    end
  end
  if seen == 4 then return true end
  return nil, 'it takes -e sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch -e sched:sched_switch'
    .. (', each once, and %d are there'):format(seen)
end

--- Adds handlers that find out whether the kernel has reported all switches to these tasks.
local function judge(handlers, found, ours, out)
  local outgoing, incoming
  for _, event in ipairs(found.stages[1]) do
    if event.name == 'sched:sched_switch' then outgoing = event end
  end
  incoming = found.stages[2][1]
  local sees_all = not incoming.filter
  local missed, leaves, enters, forget = unreported.watch(not sees_all)
  handlers[incoming] = function(ev)
    if sees_all and ours.has(ev.prev_pid) then leaves(ev.prev_pid, ev._time) end
    if ours.has(ev.next_pid) then enters(ev.next_pid, ev._time) end
  end
  -- Of tasks that are selected, only those that could go on are seen to stop.
  if not sees_all then handlers[outgoing] = function(ev) leaves(ev.prev_pid, ev._time) end end
  handlers.lost = forget
  local stop = handlers.stop
  handlers.stop = function(time)
    stop(time)
    unreported.warn(missed, out, 'rundelay', 'the waits before them are left out')
  end
  return handlers
end

return {
  summary = 'Time that tasks wait for a CPU',
  description = [[
Measures from a task's wakeup, and from when it stopped running although it could go on, until it
runs. The events need not be given; if they are, to add untraced ones for --detail or attributes,
their keys and filters are set all the same. Without -p, -t, a workload or --filter it is about all
tasks. --detail=samecpu shows the events of the CPU that the task waits for, wherever it is moved.]],
  examples = {
    { 'profscript rundelay -i 1000', 'of all tasks, every second' },
    { 'profscript rundelay --perins --filter "python*,java" -i 1000', 'of each thread of these names' },
    { 'profscript rundelay -p 1 --than 4ms --detail=samecpu', 'who ran while the threads of process 1 had to wait' },
    { [[profscript rundelay -e 'sched:sched_wakeup*,sched:sched_switch' -e 'sched:sched_switch,]]
        .. [[sched:sched_migrate_task//untraced/stack/' --than 20ms --detail=samecpu]], 'and why they were moved' },
  },
  attributes = relation.attributes,
  options = options,
  everywhere = true,

  start = function(opt, out, session)
    local ours = threads.new(session, opt)
    local found, message = relation.events(opt, 'pid')
    if not found then return nil, message end
    local names, ok
    if opt.filter then
      names, message = task_filter.names(opt.filter)
      if not names then return nil, message end
    end
    ok, message = set_up(found, names, ours, session)
    if not ok then return nil, message end
    found.key = 'pid'
    if session.named_threads and not opt.filter then found.has = ours.has end
    local handlers
    handlers, message = delay.run { name = 'rundelay', opt = opt, out = out, session = session, events = found,
      threads = true }
    return handlers and ours.follow(judge(handlers, found, ours, out)), message
  end,
}
