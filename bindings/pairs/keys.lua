-- SPDX-License-Identifier: GPL-2.0-only
--- Keys of events for the pair matcher, and whether an event may start or end a pair. The matcher itself reads keys
--- that are integer fields. For other keys, generated branches write the key column and the flags of a batch.
local bit = require 'bit'
local ffi = require 'ffi'
local events = require 'bindings.select.events'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local C = ffi.C
local keys = {}

local MACHINE_KEYS = 2 ^ C.PAIRS_MACHINE_SHIFT -- CPUs and threads of different machines are different keys

--- Returns the number of the machine whose CPUs and threads an event names; 0: this one, also for a guest's events
--- that are those of its virtual CPUs' threads here.
local function machine_of(event) return event.machine and not event.machine.vm and event.machine.index or 0 end

--- Compiles the key of an event. Returns nil if its key is the instance (its CPU or thread).
---@param config PairsConfig
---@param event Event
---@param form? string see ExprOptions
---@return Compiled?
function keys.compile(config, event, form)
  local text = event.attrs.key or config.key
  return text and not event.is_task_event and events.compile(event, text, 'key', form or 'key') or nil
end

local THREADS = { pid = true, next_pid = true, prev_pid = true, common_pid = true }

--- Returns whether the key of an event is a field that names a thread.
---@param config PairsConfig
---@param event Event
---@return boolean
function keys.is_thread(config, event) return THREADS[event.attrs.key or config.key] or false end

--- Returns whether all keys of a matcher are threads of one machine.
---@param config { stages: Event[][], key?: string }
---@param per_thread boolean the default key is the thread
---@return boolean
function keys.are_threads(config, per_thread)
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      local has_key = event.attrs.key or config.key
      local is_one = event.is_task_event or has_key and keys.is_thread(config, event) or not has_key and per_thread
      if not is_one or event.machine ~= config.stages[1][1].machine then return false end
    end
  end
  return true
end

--- Returns the key of the events that have the CPU or thread of an EVENT_LOST as their key.
---@param e ffi.cdata* struct event *
---@return integer
function keys.of_loss(e)
  return (e.cpu >= 0 and e.cpu or e.tid) + bit.rshift(e.flags, C.EVENT_MEMBER_SHIFT) * MACHINE_KEYS
end

--- Returns the field if the key is a plain integer field, which the matcher reads itself; nil otherwise.
---@return Field?
function keys.plain_field(config, event)
  local field = event.fields[event.attrs.key or config.key]
  if not field or views.has(field, 'ARRAY') or views.has(field, 'DYNAMIC') or views.has(field, 'STRING') then return end
  local size = field.size
  return (size == 1 or size == 2 or size == 4 or size == 8) and field or nil
end

--- Compiles the role= expression of an event. Bits of its value: 1 may start a pair, 2 may end one.
---@return Compiled?
function keys.role(event)
  local text = event.attrs.role
  return text and events.compile(event, text, 'role', 'number')
end

--- Event flags by role.
local ROLE_FLAGS = {
  [0] = C.EVENT_NO_FIRST + C.EVENT_NO_SECOND,
  [1] = C.EVENT_NO_SECOND,
  [2] = C.EVENT_NO_FIRST,
  [3] = 0,
}

--- Compiles all keys once, so that errors in them are reported before anything is opened.
---@param config PairsConfig
---@return boolean are_strings whether the keys are strings
function keys.check(config)
  local strings, numbers
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      local key = keys.compile(config, event)
      keys.role(event)
      if key and key.type == 'string' then
        strings = event
      else
        numbers = event
      end
    end
  end
  if strings and numbers then
    failure.usage('the key of %s is a string but the key of %s is a number; they cannot match', strings.name,
      numbers.name)
  end
  return strings ~= nil
end

--- Returns a text that is equal for keys of different events if they are read in the same way.
local function key_identity(event, key)
  local parts = { key.source }
  for _, name in ipairs(nearest.keys(key.fields_used)) do
    local field = event.fields[name]
    if field then parts[#parts + 1] = ('%s %d %d %d'):format(name, field.offset, field.size, field.flags) end
  end
  return table.concat(parts, '\n')
end

--- Returns the statements that write e.key and the role flags, their bound values, and Branch.same.
local function key_and_role(config, instance, env, event, i)
  local key, role = keys.compile(config, event), keys.role(event)
  local bound, code, same = { ['payload_' .. i] = event.view and event.view.payload }, {}, nil
  if event.is_task_event then
    code[1] = 'e.key = e.tid'
  elseif key and not keys.plain_field(config, event) then
    code[1] = ('if not key_%d(e, cast(payload_%d, e.raw), e.raw, e.raw_size) then e.flags = bor(e.flags, %d) end')
      :format(i, i, ROLE_FLAGS[0])
    bound['key_' .. i] = expr.load(key, env)
    same = key_identity(event, key)
  elseif not key then
    local machine = machine_of(event)
    code[1] = 'e.key = e.' .. instance .. (machine > 0 and (' + %d'):format(machine * MACHINE_KEYS) or '')
    same = instance .. machine
  end
  local field = key and keys.plain_field(config, event)
  if config.has and field then
    code[#code + 1] = ('if not has(tonumber(cast(payload_%d, e.raw).%s)) then e.flags = bor(e.flags, %d) end'):format(i,
      field.name, ROLE_FLAGS[0])
    bound.has, bound.tonumber = config.has, tonumber
  end
  if role then
    code[#code + 1] = ('local role = role_%d(e, cast(payload_%d, e.raw), e.raw, e.raw_size) or 0'):format(i, i)
    code[#code + 1] = 'e.flags = bor(e.flags, roles[band(role, 3)])'
    bound['role_' .. i], bound.roles, bound.band = expr.load(role, env), ROLE_FLAGS, bit.band
  end
  return code, bound, #code == 1 and same or nil
end

--- Compiles the keys of events that only details print, to check them. With samekey, the profiler's own events must
--- have the common key, because otherwise they would silently never be printed. Events of other profilers may lack it.
---@param config { key?: string }
---@param list Event[]
---@param samekey? boolean
function keys.check_context(config, list, samekey)
  for _, event in ipairs(list) do
    local is_own = not (event.owner and event.owner.parent)
    if event.attrs.key or samekey and is_own then keys.compile(config, event) end
  end
end

--- Returns a function that returns the key of an event and whether it is the value of an expression. The key of an
--- event without the fields of the common key is its CPU or thread.
---@param config { key?: string }
---@param list Event[]
---@param instance 'cpu'|'tid'
---@param env table<string, function> functions that expressions can call
---@return fun(ev: any): any, boolean
function keys.reader(config, list, instance, env)
  local by_class, machines = {}, {}
  for _, event in ipairs(list) do
    local ok, compiled = pcall(keys.compile, config, event)
    if compiled and (ok or event.attrs.key) then
      if not ok then error(compiled, 0) end
      by_class[event.class] = { evaluate = expr.load(compiled, env), payload = event.view.payload }
    end
    machines[event.class] = machine_of(event) * MACHINE_KEYS
  end
  return function(ev)
    local e = views.event_of(ev)
    local key = by_class[e.class]
    if not key then return e[instance] + (machines[e.class] or 0), false end
    if not key.evaluate(e, ffi.cast(key.payload, e.raw), e.raw, e.raw_size) then return nil, true end
    return e.key + 0LL, true
  end
end

local function has_fields(event, ...)
  for _, name in ipairs { ... } do
    if not event.fields[name] then return false end
  end
  return true
end

--- Returns the fields of a wakeup or a switch that tell which task a CPU runs; nil for other events. That is known if
--- all switches of the CPU are traced.
---@param event Event
---@param instance 'cpu'|'tid' default key
---@return { task: string, before?: string, target?: string, waker?: string }?
function keys.running_task(event, instance)
  if event.name == 'sched:sched_wakeup' and has_fields(event, 'pid', 'target_cpu', 'common_pid') then
    return { task = 'pid', target = 'target_cpu', waker = 'common_pid' }
  elseif event.name == 'sched:sched_switch' and instance == 'cpu' and (event.filter or '') == ''
    and has_fields(event, 'next_pid', 'prev_pid') then
    return { task = 'next_pid', before = 'prev_pid' }
  end
end

--- Tells the matcher at which event a thread gets another id. A key that is a field has the machine's own number.
---@param matcher ffi.cdata* struct pairs *
---@param config PairsConfig
function keys.set_id_changes(matcher, config)
  local event, key = config.id_changes, config.key or config.stages[1][1].attrs.key
  local at = event and event.fields
  if event then C.pairs_set_exec(matcher, event.class, machine_of(event), not key, at.pid.offset, at.old_pid.offset) end
end

--- Tells the matcher which events are wakeups and switches. The wakeup of a task that is still running is not followed
--- by a switch to it. If it started a pair, the pair would end at the switch back to the task after some later
--- preemption.
---@param matcher ffi.cdata* struct pairs *
---@param config PairsConfig
---@param others Event[] events outside the stages, which may be switches
---@param instance 'cpu'|'tid' default key
function keys.set_running(matcher, config, others, instance)
  local function set(event)
    local machine = machine_of(event)
    -- A guest's tasks and CPUs are not those that its events have with vm=.
    if event.machine and event.machine.vm then return C.pairs_share_keys(matcher, event.machine.index) end
    local names = keys.running_task(event, instance)
    local function offset(name) return event.fields[names[name]].offset end
    local code = 0
    if names and names.target then
      code = C.pairs_set_wakeup(matcher, event.class, machine, offset 'task', offset 'target', offset 'waker')
    elseif names then
      code = C.pairs_set_switch(matcher, event.class, machine, offset 'task', offset 'before')
    end
    if code < 0 then failure.raise('cannot follow the running tasks: %s', sys.strerror(-code)) end
  end
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do set(event) end
  end
  for _, event in ipairs(others) do set(event) end
end

--- Returns the branches that write the role flags and, unless the matcher reads it, the key column. An event whose key
--- has no value (such as a division by zero) is ignored.
---@param config PairsConfig
---@param instance 'cpu'|'tid' default key
---@param env table<string, function> functions that expressions can call
---@return Branch[]
function keys.branches(config, instance, env)
  local branches, serial = {}, 0
  for _, stage in ipairs(config.stages) do
    for _, event in ipairs(stage) do
      serial = serial + 1
      local code, bound, same = key_and_role(config, instance, env, event, serial)
      if #code > 0 then
        branches[#branches + 1] = { class = event.class, code = table.concat(code, '\n'), bound = bound, same = same }
      end
    end
  end
  return branches
end

return keys
