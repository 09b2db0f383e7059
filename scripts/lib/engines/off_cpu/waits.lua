-- SPDX-License-Identifier: GPL-2.0-only
--- Waits of tasks: why and at which stack a task left its CPU, how long it was off it, and who woke it.
local array = require 'lib.array'
local bit = require 'bit'
local intern = require 'lib.intern'
local sched_switch = require 'bindings.expr.sched_switch'
local task_states = require 'lib.task_states'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local band, QUEUED = bit.band, sched_switch.QUEUED
local waits = { NO_STACK = -1, BEFORE = -2 } -- BEFORE: the stack of a wait that had begun before the run

local MAX_CHAINS, MAX_NAMES = 65536, 65536
local IN_INTERRUPT = 0x18 -- of common_flags: TRACE_FLAG_HARDIRQ and TRACE_FLAG_SOFTIRQ
waits.IN_INTERRUPT = IN_INTERRUPT
local NO_STACK, BEFORE = waits.NO_STACK, waits.BEFORE
local FIRST = 1 -- ns: the start of the run; 0 is none
local UNKNOWN = '<...>'

--- Functions of the kernel in which interrupts wake tasks, and what they stand for. A stack has the cause below them
--- and the interrupted task, which has nothing to do with it, above.
local CAUSES = {
  hrtimer_wakeup = '[timer]', process_timeout = '[timer]', posix_timer_fn = '[timer]', it_real_fn = '[timer]',
  timerfd_tmrproc = '[timer]', tick_nohz_handler = '[timer]', call_timer_fn = '[timer]',
  net_rx_action = '[network]', process_backlog = '[network]', tcp_v4_rcv = '[network]', tcp_v6_rcv = '[network]',
  blk_mq_end_request = '[disk]', blk_mq_complete_request = '[disk]', blk_done_softirq = '[disk]',
  blk_update_request = '[disk]', bio_endio = '[disk]',
  rcu_core = '[rcu]', irq_work_run = '[irq work]', __sysvec_call_function_single = '[another CPU]',
  __flush_smp_call_function_queue = '[another CPU]', serial8250_interrupt = '[terminal]',
}
local OTHER_CAUSE = '[interrupt]'

--- A wait that has ended, or that lasts when the run ends. The fields are those of the last one.
---@class Wait
---@field ns number
---@field name integer see OffCpu.task_name
---@field state integer see sched_switch.STATES
---@field stack integer at which the task left its CPU; NO_STACK, BEFORE
---@field wakers integer see OffCpu.waker_names; 0: it was not woken, or nobody saw by whom
---@field waker_stack integer NO_STACK: none

---@class OffCpu
---@field switch fun(ev: Ev): boolean takes a sched:sched_switch, returns whether a wait ended
---@field waking fun(ev: Ev) takes a sched:sched_waking
---@field lost fun(gap: table) takes lost events
---@field last Wait the wait that ended last
---@field open fun(time: number, each: fun(wait: Wait)) calls a function with each wait that lasts
---@field task_name fun(name: integer): string
---@field name_id fun(name: string): integer
---@field set_first fun(tid: integer, state: integer, comm: string): boolean notes that a thread is off its CPU when
--- the run begins; false: it is not
---@field waker_names fun(wakers: integer): string[] the waker, its own waker and so on
---@field missed Unreported
---@field add_up fun(given: AddedUpWaits): { taken: (fun(): boolean), begin?: fun(tids: integer[]) } lets a program add
--- up the waits, if it can. taken: it does; begin: call it with the threads that the user has named

--- How waits are added up.
---@class AddedUpWaits
---@field event Event sched:sched_switch
---@field handler fun(ev: Ev) that adds them up
---@field opt table of offcpu
---@field sums OffCpuReport
---@field needs_events? string why each event is needed

--- Returns a function that names what woke a task in an interrupt, by the stack.
---@param session Session
---@return fun(stack: integer): string
function waits.cause_finder(session)
  local by_stack, names, kinds = {}, {}, {}
  return function(stack)
    local cause = by_stack[stack]
    if cause then return cause end
    cause = OTHER_CAUSE
    for i = 1, session.frame_names(stack, names, kinds) do
      if kinds[i] ~= 'k' then break end
      if CAUSES[names[i]] then
        cause = CAUSES[names[i]]
        break
      end
    end
    by_stack[stack] = cause
    return cause
  end
end

--- Follows who woke whom.
---@param session Session
---@param depth integer number of wakers to know: that of the task, the waker's own one, and so on
---@param name_of fun(tid: integer): string names tasks that the session does not know
local function wakers_of(session, depth, name_of)
  local chains = intern.new(2, MAX_CHAINS) -- by name of the waker, and 1 + the id of its own wakers, or 0
  local cause_of = waits.cause_finder(session)
  -- By length of the chain, by task: the id of its wakers.
  local woken, stacks = {}, array.new(threads.MAX)
  for i = 1, depth do woken[i] = array.new(threads.MAX) end
  local self = {}

  local function set(tid, name, waker)
    for i = depth, 1, -1 do
      local before = waker and i > 1 and woken[i - 1][waker] or 0
      woken[i][tid] = chains.id(name, before) + 1
    end
  end
  function self.wake(ev)
    local tid, stack = ev.pid, ev._stack
    if band(ev.common_flags, IN_INTERRUPT) ~= 0 then
      set(tid, cause_of(stack))
      stacks[tid] = NO_STACK
    else
      local comm = ev._comm
      set(tid, comm ~= UNKNOWN and comm or name_of(ev._tid), ev._tid)
      stacks[tid] = stack
    end
  end
  function self.forget(tid)
    for i = 1, depth do woken[i][tid] = 0 end
    stacks[tid] = NO_STACK
  end
  --- Returns the id of a task's wakers, and the stack of the first one.
  function self.of(tid) return woken[depth][tid], stacks[tid] end

  function self.names(id)
    local list = {}
    while id > 0 and id <= chains.max do
      list[#list + 1] = chains:part(id - 1, 1)
      id = chains:part(id - 1, 2)
    end
    return list
  end
  return self
end

--- Names of tasks by the last switch from each: recordings may lack the records that name them.
local function names_of_tasks()
  local comms, ids, list = intern.new(1, MAX_NAMES), array.new(threads.MAX), {}
  local self = { list = list } -- list: the tasks that have left a CPU
  function self.id_of(comm) return comms.id(comm) + 1 end
  function self.set(tid, comm)
    if ids[tid] == 0 then list[#list + 1] = tid end
    ids[tid] = comms.id(comm) + 1
  end
  function self.id(tid) return ids[tid] end
  function self.text(id) return id > 0 and id <= comms.max and comms:part(id - 1, 1) or UNKNOWN end
  function self.of(tid) return self.text(ids[tid]) end
  return self
end

--- Returns the function add_up() of a follower.
local function adder(self, session)
  return function(given)
    local opt, sums = given.opt, given.sums
    local in_kernel = session.waits { event = given.event, handler = given.handler, than = opt.than,
      missed = self.missed, no_stack = NO_STACK, before = BEFORE, named = session.named_threads,
      duration = opt.duration, needs_events = given.needs_events,
      row = function(name, ...) sums:add_sums(self.name_id(name), ...) end,
      left_out = function(ns) sums:leave_out(ns) end }
    local function begin(tids)
      task_states.of_threads(tids, function(tid, state, comm)
        if self.set_first(tid, state, comm) then in_kernel:set_first(tid, state, comm) end
      end)
    end
    if not (opt.input or session.named_threads) then begin(task_states.all_threads()) end
    return { taken = function() return in_kernel:taken() end, begin = (opt.pids or opt.tids) and begin }
  end
end

--- Returns the function that begins the wait of a task which was off CPU when the run began.
local function first_setter(names, since, states, stacks)
  return function(tid, state, comm)
    if state == sched_switch.ON_CPU or tid >= threads.MAX or since[tid] > 0 then return false end
    names.set(tid, comm)
    since[tid], states[tid], stacks[tid] = FIRST, state, BEFORE
    return true
  end
end

--- Creates the follower of waits.
---@param settings { session: Session, ours: Threads, depth: integer }
---@return OffCpu
function waits.new(settings)
  local has, max = settings.ours.has, threads.MAX
  local names, depth = names_of_tasks(), settings.depth
  local wakers = wakers_of(settings.session, depth, names.of)
  local since, stacks, states = array.new(max), array.new(max), array.new(max)
  local missed, leaves, enters, missed_after = unreported.watch()
  local known_from, last = 0, {}
  local self = { last = last, missed = missed, task_name = names.text, name_id = names.id_of,
    waker_names = wakers.names }

  local function take(tid, now)
    last.ns, last.name, last.state, last.stack = now - since[tid], names.id(tid), states[tid], stacks[tid]
    last.wakers, last.waker_stack = 0, NO_STACK
    if depth > 0 and last.state ~= QUEUED then last.wakers, last.waker_stack = wakers.of(tid) end
  end

  local function leave(tid, ev)
    local state = sched_switch.state_of(ev.prev_state)
    leaves(tid, ev._time, ev._cpu)
    names.set(tid, ev.prev_comm)
    since[tid] = state and ev._time or 0 -- a task that has ended waits for nothing
    if not state then return end
    stacks[tid], states[tid] = ev._stack, state
    if depth > 0 and state ~= QUEUED then wakers.forget(tid) end
  end

  self.add_up = adder(self, settings.session)
  function self.waking(ev)
    local tid = ev.pid
    if since[tid] > 0 and states[tid] ~= QUEUED then wakers.wake(ev) end
  end
  function self.switch(ev)
    local prev, tid, now = ev.prev_pid, ev.next_pid, ev._time
    if prev > 0 and has(prev) then leave(prev, ev) end
    if tid <= 0 or not has(tid) then return false end
    enters(tid, now, ev._cpu, prev)
    local ended = since[tid] > known_from
    if ended then take(tid, now) end
    since[tid] = 0
    return ended
  end
  self.set_first = first_setter(names, since, states, stacks)
  function self.lost(gap)
    known_from = math.max(known_from, gap.to)
    missed_after(gap)
  end
  function self.open(time, each)
    for _, tid in ipairs(names.list) do
      if since[tid] > known_from then
        take(tid, time)
        each(last)
      end
    end
  end
  return self
end

return waits
