-- SPDX-License-Identifier: GPL-2.0-only
--- Selection of the events that concern a pair (lib.detail). It adds notes about the thread that the pair is about.
local sched_switch = require 'bindings.expr.sched_switch'

local context = {}

-- Fields that name CPUs and tasks. In other events these are `cpu` and `pid`.
local FIELDS = {
  ['sched:sched_wakeup'] = { is = 'wakeup', cpus = { 'target_cpu' } },
  ['sched:sched_waking'] = { is = 'wakeup', cpus = { 'target_cpu' } },
  ['sched:sched_wakeup_new'] = { is = 'wakeup', cpus = { 'target_cpu' } },
  ['sched:sched_switch'] = { is = 'switch', pids = { 'prev_pid', 'next_pid' } },
  ['sched:sched_migrate_task'] = { is = 'migrate', cpus = { 'orig_cpu', 'dest_cpu' } },
  ['sched:sched_process_fork'] = { pids = { 'parent_pid', 'child_pid' } },
}

local function existing(event, names)
  local found = {}
  for _, name in ipairs(names) do
    local field = event.fields[name]
    if field and field.size <= 8 and (field.count or 1) <= 1 then found[#found + 1] = name end
  end
  return found
end

--- Returns the CPU and task fields of an event, and whether it is a wakeup, switch or migration.
local function kind_of(event)
  local known = FIELDS[event.name] or {}
  local kind = {
    is = known.is,
    cpus = existing(event, known.cpus or { 'cpu' }),
    pids = existing(event, known.pids or { 'pid' }),
  }
  local complete = #kind.pids == (known.pids and #known.pids or 1) and #kind.cpus == (known.cpus and #known.cpus or 0)
  if kind.is and not complete then kind.is = nil end
  return kind
end

--- Returns the number of the machine whose CPUs and tasks an event names. Those of a guest with vm= are threads of
--- this one.
local function machine_of(event)
  local machine = event and event.machine
  return machine and not machine.vm and machine.index or 0
end

local function has_value(ev, fields, value)
  for i = 1, #fields do
    if ev[fields[i]] == value then return true end
  end
  return false
end

---@class Context
local Context = {}
Context.__index = Context

--- Creates a context, which is used for one pair after the other.
---@param tests DetailSettings
---@param keyed_by_thread boolean whether the key of a pair is the thread that it is about
---@param preempted fun(event: Event): integer session.preempted_state
---@param key_of fun(ev: Ev): any, boolean returns the key of an event, and whether it is the value of an expression
---@return Context
function context.new(tests, keyed_by_thread, preempted, key_of)
  return setmetatable({
    tests = tests,
    keyed_by_thread = keyed_by_thread,
    preempted = preempted,
    key_of = key_of,
    kinds = setmetatable({}, { __mode = 'k' }),
    filters = tests.cpu or tests.pid or tests.tid or tests.key,
  }, Context)
end

--- Returns the cached kind of an event, see kind_of().
---@package
function Context:kind(event)
  local kind = self.kinds[event]
  if not kind then
    kind = kind_of(event)
    if kind.is == 'switch' then kind.preempted = self.preempted(event) end
    self.kinds[event] = kind
  end
  return kind
end

--- Starts a pair. The context tracks the thread, the CPU on which it runs or waits, and the task that runs on each
--- CPU of the pair.
---@param pair { first: Ev, first_event: Event, second?: Ev, second_event?: Event, key: number }
function Context:start(pair)
  local first = pair.first
  local thread = self.keyed_by_thread and pair.key or first._tid
  self.pair = pair
  self.thread = thread > 0 and thread or nil
  self.pid = self.keyed_by_thread and first._tid ~= thread and thread or first._pid
  if self.tests.key then self.key, self.has_key = self.key_of(first) end
  self.cpu = first._cpu
  self.first_machine, self.second_machine = machine_of(pair.first_event), machine_of(pair.second_event)
  self.slots = {}
end

--- Call this at the first event of the pair.
function Context:reach_first()
  local pair = self.pair
  local kind = self:kind(pair.first_event)
  self.cpu = pair.first._cpu
  self:track(pair.first, kind)
  self.slots = {
    { cpu = pair.first._cpu, pid = kind.is == 'switch' and pair.first.next_pid or pair.first._tid,
      since = pair.first._time },
    { cpu = pair.second and pair.second._cpu or -1 },
    { cpu = self.cpu },
  }
end

--- Updates the CPU of the thread. Returns what the event means for the thread; nil if it does not concern it.
---@return string? note
---@package
function Context:track(ev, kind)
  local thread, is = self.thread, kind.is
  if not thread or not is then return end
  if is == 'switch' then
    if ev.next_pid == thread then
      self.cpu = ev._cpu
      return 'running'
    elseif ev.prev_pid == thread then
      local state = ev.prev_state
      if sched_switch.is_runnable(tonumber(state), kind.preempted) then
        self.cpu = ev._cpu
        return 'preempt'
      end
      self.cpu = -1
      return state == 1 and 'sleeping' or 'waiting'
    end
  elseif ev.pid == thread then
    self.cpu = is == 'wakeup' and ev.target_cpu or ev.dest_cpu
    return is
  end
end

--- Returns which CPU an event shares with the thread or with the events of the pair; nil if none.
---@return string? reason
---@package
function Context:same_cpu(ev, kind, machine)
  local function on(cpu, of) return machine == of and (ev._cpu == cpu or has_value(ev, kind.cpus, cpu)) end
  if self.cpu >= 0 and on(self.cpu, self.first_machine) then return 'samecpu-track' end
  if self.keyed_by_thread then return end
  local tests, pair = self.tests, self.pair
  if tests.first and on(pair.first._cpu, self.first_machine) then return 'samecpu-1' end
  if tests.second and pair.second and on(pair.second._cpu, self.second_machine) then return 'samecpu-2' end
end

--- Returns which event of the pair has the same process or thread as an event.
---@param field '_pid'|'_tid'
---@return '-1'|'-2'|nil
---@package
function Context:same_task(ev, kind, machine, field, first_id)
  local function is(id, of)
    return machine == of and id and id > 0 and (ev[field] == id or has_value(ev, kind.pids, id))
  end
  local tests, second = self.tests, not self.keyed_by_thread and self.pair.second
  if tests.first and is(first_id, self.first_machine) then return '-1' end
  if tests.second and second and is(second[field], self.second_machine) then return '-2' end
end

--- Returns the note and the reason of look() that follow from the CPU of an event.
---@package
function Context:look_at_cpu(ev, kind, machine)
  if machine ~= self.first_machine then return nil, self:same_cpu(ev, kind, machine) end
  local note = self:track(ev, kind)
  if note then return note, self.cpu < 0 and 'cpu tracking end' or 'cpu tracking' end
  if not self.keyed_by_thread and self.thread and ev._tid == self.thread and ev._cpu ~= self.cpu then
    self.cpu = ev._cpu
    return nil, 'cpu tracking'
  end
  return nil, self:same_cpu(ev, kind, machine)
end

--- Tests the next event.
---@param ev Ev
---@param event Event the event of ev
---@return boolean shown
---@return string? note what the event means for the thread: 'running', 'preempt', 'wakeup'...
---@return string? reason the test that the event has passed: 'samecpu-1'...
function Context:look(ev, event)
  if not self.filters then return true end
  local tests, kind, machine = self.tests, self:kind(event), machine_of(event)
  if tests.cpu then
    local note, reason = self:look_at_cpu(ev, kind, machine)
    if reason then return true, note, reason end
  end
  if tests.pid then
    local which = self:same_task(ev, kind, machine, '_pid', self.pid)
    if which then return true, nil, 'samepid' .. which end
  end
  if tests.tid then
    local tid = self.keyed_by_thread and self.thread or self.pair.first._tid
    local which = self:same_task(ev, kind, machine, '_tid', tid)
    if which then return true, nil, 'sametid' .. which end
  end
  if tests.key then
    local key, has_key = self.key_of(ev)
    if has_key == self.has_key and key ~= nil and key == self.key then return true, nil, 'samekey' end
  end
  return false
end

--- Returns the run time of the task that a switch takes off a CPU of the pair.
---@param ev Ev
---@param event Event the event of ev
---@return number? ns nil: not such a switch, or the task's start was not seen
---@return string? comm name of the task
function Context:run(ev, event)
  local slots = self.slots
  if slots[3].cpu ~= self.cpu then slots[3] = { cpu = self.cpu } end
  if self:kind(event).is ~= 'switch' or machine_of(event) ~= self.first_machine then return end
  local ns, comm
  for _, slot in ipairs(slots) do
    if slot.cpu == ev._cpu then
      if slot.pid and slot.pid > 0 and slot.pid == ev.prev_pid then
        ns, comm = ev._time - slot.since, ev.prev_comm
      end
      slot.pid, slot.since = ev.next_pid, ev._time
    end
  end
  return ns, comm
end

return context
