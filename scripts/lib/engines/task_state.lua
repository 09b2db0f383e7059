-- SPDX-License-Identifier: GPL-2.0-only
--- The states of tasks, from event to event. A state is counted when it ends. Where nothing needs the events, BPF
--- programs do the same in the kernel (session.task_states).
local array = require 'lib.array'
local flamegraph = require 'lib.flamegraph'
local sched_switch = require 'bindings.expr.sched_switch'
local task_filter = require 'lib.task_filter'
local task_states = require 'lib.task_states'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local NAMES, ON_CPU, SLEEP, QUEUED = sched_switch.STATES, sched_switch.ON_CPU, sched_switch.SLEEP, sched_switch.QUEUED
local RUNNABLE = #NAMES + 1 -- at the start of the run: R or RD, which the next switch tells
local BITS = sched_switch.BITS

local state_of = array.new(BITS)
for bits = 0, BITS - 1 do state_of[bits] = sched_switch.state_of(bits) or 0 end

local task_state = {}

---@class TaskStateSettings
---@field opt table of task-state
---@field out Output
---@field session Session
---@field ours Threads
---@field names? TaskFilter
---@field times TaskStateTable

--- The functions are called with a dot.
---@class TrackedStates
---@field handlers table of the events
---@field missed Unreported
---@field flame? FlameGraph
---@field set_first fun(tid: integer, state: integer) sets the state of a thread at the start of the run
---@field count_current fun(time: number) counts the states of the threads that the user has named until the run's end
---@field dropped fun(): integer returns how many states were dropped, because events are lost
---@field names fun(): table<integer, string> returns names of threads that the session may not know

--- Returns a function that adds a state to the flame graph, at the stack of the task's last switch.
local function drawer(flame, stacks, session)
  local sample = { _stack = 0, _comm = '', _pid = 0, _tid = 0, _cpu = 0 }
  return function(pid, ns, ev)
    sample._stack, sample._comm, sample._pid = stacks[pid], session.task_name(pid), pid
    sample._tid, sample._cpu = pid, ev and ev._cpu or -1
    flame:add(sample, ns)
  end
end

--- Opens the events, with filters for the selected tasks and states.
local function open_events(self)
  local opt, session, names, ours = self.opt, self.session, self.names, self.ours
  local only = sched_switch.asleep(opt.interruptible, opt.uninterruptible)
  local function select(name, prefix, states)
    local event = session.event { name }
    if not event then return end
    local filter = task_filter.all(states, names and names.text(prefix .. 'comm') or ours.filter(prefix .. 'pid'))
    if filter then event:set { filter = filter } end
    return event
  end
  local events, is_one = {}, not (only or names or ours.filter 'pid')
  events.leaves = select('sched:sched_switch', 'prev_', only)
  if is_one then events.enters = events.leaves elseif not only then
    events.enters = select('sched:sched_switch', 'next_')
  end
  events.wakes = select('sched:sched_wakeup', '')
  events.born = select('sched:sched_wakeup_new', '')
  events.moves = session.id_changes()
  return events, only ~= nil
end

--- What the handlers of events need.
---@class (private) TaskStateParts
---@field is_ours fun(pid: integer): boolean
---@field missed Unreported
---@field states Array
---@field since Array
---@field only_sleep boolean
---@field add function
---@field current fun(pid: integer): integer
---@field set_state fun(pid: integer, state: integer, ev: Ev)
---@field born function
---@field moved fun(ev: Ev)
---@field left? fun(pid: integer, ev: Ev)

--- Returns the handlers of the two sides of a switch.
---@param of TaskStateParts
local function switch_sides(of)
  local is_ours, missed, since, only_sleep = of.is_ours, of.missed, of.since, of.only_sleep
  local add, current, set_state, left = of.add, of.current, of.set_state, of.left
  local function leaves(ev)
    local pid = ev.prev_pid
    if not is_ours(pid) then return end
    local state = current(pid)
    if state == ON_CPU or state == RUNNABLE then
      add(pid, ON_CPU, ev._time - since[pid], ev)
    elseif state ~= 0 and not only_sleep then -- the switch to it was not reported
      missed.switches = missed.switches + 1
    elseif state ~= 0 then
      missed.wakeups = missed.wakeups + 1
    end
    set_state(pid, state_of[tonumber(ev:u64 'prev_state') % BITS], ev)
    if left then left(pid, ev) end
  end
  local function enters(ev)
    local pid = ev.next_pid
    if not is_ours(pid) then return end
    local state = current(pid)
    if state == QUEUED or state == RUNNABLE then
      add(pid, QUEUED, ev._time - since[pid], ev)
    elseif state == ON_CPU then
      missed.switches = missed.switches + 1
    elseif state ~= 0 then
      missed.wakeups = missed.wakeups + 1
      add(pid, state, ev._time - since[pid], ev)
    end
    set_state(pid, ON_CPU, ev)
  end
  return leaves, enters
end

--- Returns the handlers of the events.
---@param of TaskStateParts
local function handlers_of(events, of)
  local is_ours, missed, only_sleep = of.is_ours, of.missed, of.only_sleep
  local add, current, set_state, states, since = of.add, of.current, of.set_state, of.states, of.since
  local leaves, enters = switch_sides(of)
  local handlers = {}
  local function wakes(ev)
    local pid = ev.pid
    if not is_ours(pid) then return end
    local state = current(pid)
    if state ~= ON_CPU and state ~= QUEUED then
      if state ~= 0 and state ~= RUNNABLE then add(pid, state, ev._time - since[pid], ev) end
      set_state(pid, only_sleep and 0 or QUEUED, ev)
    end
  end
  if events.wakes then handlers[events.wakes] = wakes end
  if events.born then
    handlers[events.born] = function(ev)
      of.born(ev)
      if is_ours(ev.pid) then set_state(ev.pid, only_sleep and 0 or QUEUED, ev) end
    end
  end
  if events.enters ~= events.leaves then
    handlers[events.leaves] = leaves
    if events.enters then handlers[events.enters] = enters end
  else
    handlers[events.leaves] = function(ev)
      leaves(ev)
      enters(ev)
    end
  end
  if events.moves then
    handlers[events.moves] = function(ev)
      local before, pid = ev.old_pid, ev.pid
      of.moved(ev)
      states[pid], since[pid], states[before] = states[before], since[before], 0
    end
  end
  -- A task that was woken is not seen to run, only to end.
  if only_sleep then
    function handlers.exit(ev)
      local pid = ev._tid
      if is_ours(pid) and current(pid) ~= 0 then
        missed.wakeups = missed.wakeups + 1
        states[pid] = 0
      end
    end
  end
  return handlers
end

--- Adds the functions of tracked states.
---@param self TrackedStates
---@param of table
---@return TrackedStates
local function tracked(self, of)
  local in_kernel, states, since, loss = of.in_kernel, of.states, of.since, of.loss
  function self.names() return in_kernel:names() end
  function self.dropped() return loss.dropped end
  function self.set_first(tid, state)
    local is_done = in_kernel:set_first(tid, state ~= ON_CPU and state or nil)
    if not is_done then states[tid] = state == ON_CPU and RUNNABLE or state end
  end
  function self.count_current(time)
    if not of.session.named_threads then return end
    in_kernel:each(function(tid, state, from) states[tid], since[tid] = state, from end)
    for pid = 1, threads.MAX - 1 do
      local state = states[pid]
      if state ~= 0 and state ~= RUNNABLE and since[pid] >= loss.known_from and time > since[pid]
        and task_states.lasts(pid, state, self.missed) then
        of.add(pid, state, time - since[pid])
      end
    end
  end
  return self
end

--- Follows the states of tasks.
---@param given TaskStateSettings
---@return TrackedStates
function task_state.new(given)
  local opt, session, times = given.opt, given.session, given.times
  local hists, row = times.hists, times.row
  local states, since = array.new(threads.MAX), array.new(threads.MAX)
  local loss = { known_from = 0, dropped = 0 } -- the end of the last one: states that began before it are unknown
  local missed = unreported.new()
  local than, all_but_s = opt.than or math.huge, opt.interruptible == false
  local pass = opt.than and session.gate()
  local started = opt.than and not pass and session.slots(threads.MAX)
  local in_kernel
  local function first_event(pid, state, from) return in_kernel:first(pid, state, from) or started:get(pid) end
  local print_wait = pass and function(_, _, _, ev) return ev and pass(ev) end
    or opt.than and require 'lib.task_state_waits'.printer(given.out, session, first_event, NAMES)
  local flame = flamegraph.new(opt, session, given.out, { title = 'time off the CPU', unit = 'ns' })
  local stacks = array.new(threads.MAX) -- by task, of its last switch out
  local draw = flame and drawer(flame, stacks, session)
  local slice = session.slices { by = 'tid', names = NAMES }

  --- Counts a state of the task that has ended.
  local function add(pid, state, ns, ev)
    if all_but_s and state == SLEEP then return end
    if slice then slice(state, pid, since[pid], since[pid] + ns) end
    hists:add(row(pid, state), ns)
    if draw and state ~= ON_CPU and state ~= QUEUED then draw(pid, ns, ev) end
    if ns > than and state ~= ON_CPU then print_wait(pid, state, ns, ev, not ev and since[pid] or nil) end
  end
  --- Returns the current state of the task, 0 if it is unknown.
  local function current(pid)
    local state = states[pid]
    if state ~= 0 and since[pid] < loss.known_from then
      loss.dropped = loss.dropped + 1
      states[pid] = 0
      return 0
    end
    return state
  end
  local function set_state(pid, state, ev)
    states[pid], since[pid] = state, ev._time
    if started then started:put(pid, ev) end
  end

  local events, only_sleep = open_events(given)
  local handlers = handlers_of(events, { is_ours = given.ours.has, missed = missed, states = states, since = since,
    only_sleep = only_sleep, add = add, current = current, set_state = set_state, born = given.ours.born,
    moved = given.ours.moved, left = flame and function(pid, ev) stacks[pid] = ev._stack end })
  handlers.lost = function(gap) loss.known_from = math.max(loss.known_from, gap.to) end
  in_kernel = session.task_states {
    events = events, handlers = handlers, hists = hists, row = row, other = times.other, missed = missed,
    by_thread = opt.perins, only = only_sleep, all_but_sleep = all_but_s, than = opt.than, print = print_wait,
    named = session.named_threads, duration = opt.duration,
    needs_events = given.names and 'tasks are selected by name' or flame and 'a flame graph is drawn' or nil,
  }

  return tracked({ handlers = handlers, missed = missed, flame = flame }, { in_kernel = in_kernel, states = states,
    since = since, loss = loss, add = add, session = session })
end

return task_state
