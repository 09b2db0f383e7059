-- SPDX-License-Identifier: GPL-2.0-only
--- Waits of runnable tasks for a CPU (rundelay), from two stages of events. A program in the kernel, or the matcher
--- without a filter, sees all switches and finds those that the kernel did not report; else handlers look for them.
local delay = require 'lib.delay'
local relation = require 'lib.relation'
local sched_switch = require 'bindings.expr.sched_switch'
local task_filter = require 'lib.task_filter'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local run_queue = {}

-- The events of each stage, and the prefix of the fields of the task that they are about.
local TASK_PREFIXES = {
  { ['sched:sched_wakeup'] = '', ['sched:sched_wakeup_new'] = '', ['sched:sched_switch'] = 'prev_' },
  { ['sched:sched_switch'] = 'next_' },
}

--- Returns whether one event can be the switches of both stages: all switches are read, for nothing but the pairs.
local function can_share_switches(found, opt, session)
  if relation.needs_both_switches(opt) then return false end
  for _, stage in ipairs(found.stages) do
    for _, event in ipairs(stage) do
      if #event.given > 0 then return false end
    end
  end
  local only_outliers = opt.than or opt.only_than or opt.lower
  return not (session.named_threads or session.is_source and not only_outliers or opt.verbose > 1)
end

--- Sets the key and filter of each of the four events.
local function set_up(found, names, ours, session)
  local seen, switches = 0, 0
  for i, stage in ipairs(found.stages) do
    for _, event in ipairs(stage) do
      local prefix = TASK_PREFIXES[i] and TASK_PREFIXES[i][event.name]
      if not prefix then
        return nil, ("-e number %d: %s belongs to no stage; mark it 'untraced'"):format(i, event.name)
      end
      seen, switches = seen + 1, switches + (prefix == '' and 0 or 1)
      local tasks, stopped = names and names.text(prefix .. 'comm') or ours.filter(prefix .. 'pid'), nil
      if prefix == 'prev_' then
        stopped = sched_switch.runnable(session.preempted_state(event))
        tasks = tasks or 'prev_pid > 0'
      end
      event:set { key = prefix .. 'pid', filter = task_filter.all(tasks, stopped) }
    end
  end
  if seen == 4 or session.recorded() and switches == 2 then return true end
  return nil, ('needs these 4 events, not %d: -e sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch'
    .. ' -e sched:sched_switch'):format(seen)
end

--- Sets the event that tells which task goes to sleep. A task that sleeps was on a CPU before, so it no longer waits
--- for one, even if the kernel did not report the switch to it.
---@param outgoing? Event the switches from runnable tasks, if they are those of the second stage that are not to sleep
---@return Event sleeps the switches to all tasks, or the switches of these tasks to sleep
local function end_waits(found, names, ours, session, outgoing)
  local incoming = found.stages[2][1]
  local sleeps, mask = incoming, sched_switch.asleep_mask(session.preempted_state(incoming))
  if incoming.filter then
    local tasks = names and names.text 'prev_comm' or ours.filter 'prev_pid'
    sleeps = session.event { 'sched:sched_switch' }
    sleeps:set { filter = task_filter.all(tasks, ('prev_state & %d'):format(mask)) }
  end
  found.ends = { { event = sleeps, key = 'prev_pid', bits = 'prev_state', mask = mask, awake = outgoing } }
  return sleeps
end

--- Returns the event of the first stage that is the switch from a runnable task.
local function outgoing_switch(found)
  for _, event in ipairs(found.stages[1]) do
    if event.name == 'sched:sched_switch' then return event end
  end
end

--- Returns handlers that detect switches of these tasks that the kernel did not report. They count them in `missed`.
local function detect_unreported(found, outgoing, sleeps, ours)
  local incoming = found.stages[2][1]
  local sees_all = sleeps == incoming
  local missed, leaves, enters, forget, moved, renamed = unreported.watch()
  local checks = {}
  checks[incoming] = function(ev)
    if sees_all and ours.has(ev.prev_pid) then leaves(ev.prev_pid, ev._time, ev._cpu) end
    if ours.has(ev.next_pid) then enters(ev.next_pid, ev._time, ev._cpu, ev.prev_pid) end
  end
  if not sees_all then
    local function leave(ev) leaves(ev.prev_pid, ev._time, ev._cpu) end
    checks[outgoing], checks[sleeps] = leave, leave
  end
  if found.id_changes then
    checks[found.id_changes] = function(ev)
      moved(ev)
      ours.moved(ev)
    end
  end
  return checks, missed, forget, renamed
end

--- The waits of a run.
---@class RunQueueWaits
---@field found RelatedEvents
---@field ours Threads
---@field sees_all boolean the switches of the second stage are those of all tasks
---@field checks table<Event, fun(ev: Ev)> detect unreported switches, and count them in `missed`
---@field missed? Unreported
---@field forget? fun(gap: table)
---@field renamed? fun(ev: Ev) for tasks of some names

--- Returns the waits of the tasks that the user has selected.
---@param opt table of rundelay
---@param session Session
---@return RunQueueWaits? waits nil: see message
---@return string? message
function run_queue.new(opt, session)
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
  if session.named_threads and not opt.filter then found.has, found.has_targets = ours.has, true end
  found.id_changes = session.id_changes()
  local outgoing, waits = outgoing_switch(found), { found = found, ours = ours, checks = {} }
  local is_shared = can_share_switches(found, opt, session)
  local sleeps = end_waits(found, names, ours, session, is_shared and outgoing or nil)
  if not (is_shared or session.is_source) then -- a source does not report them
    waits.checks, waits.missed, waits.forget, waits.renamed = detect_unreported(found, outgoing, sleeps, ours)
    if not names then waits.renamed = nil end
  end
  -- Without a filter, the pair matcher sees all switches, too: it finds those that are missing if no handler does.
  waits.sees_all = sleeps == found.stages[2][1]
  if waits.sees_all then found.handlers = waits.checks end
  return waits
end

--- Returns the handlers of the profiler.
---@param waits RunQueueWaits
---@param opt table
---@param out Output
---@param session Session
---@return table? handlers nil: see message
---@return string? message
function run_queue.run(waits, opt, out, session)
  local handlers, message = delay.run { name = 'rundelay', opt = opt, out = out, session = session,
    events = waits.found, threads = true }
  if not handlers then return nil, message end
  local matcher, stop = handlers[1], handlers.stop
  for event, check in pairs(waits.checks) do handlers[event] = check end
  handlers.lost, handlers.comm = waits.forget, waits.renamed
  function handlers.stop(time)
    stop(time)
    local missed, switches = waits.missed, waits.sees_all and matcher:stats().unreported
    if switches then
      missed = unreported.new()
      missed.switches = switches
    end
    unreported.warn(missed, out, 'rundelay', 'the waits before them are not counted')
  end
  return waits.ours.follow(handlers)
end

return run_queue
