-- SPDX-License-Identifier: GPL-2.0-only
--- Source of programs on a tracepoint itself (type tracing): its fields are read from the tracepoint's arguments,
--- before any record is made. Such programs run for every event, also for those in interrupts that hit another program.
---
--- The kernel does not describe how a tracepoint's fields come from its arguments, so a table names them for frequent
--- events, with code for the fields that the kernel computes, such as sched_switch's prev_state.
local asm = require 'bindings.kernel.asm'
local computed = require 'bindings.kernel.computed'
local source = require 'bindings.kernel.source'
local types = require 'bindings.kernel.types'

local CONTEXT = asm.CONTEXT
local arguments = {}

--- Where a field comes from: the number of an argument; for a member, also the structure that the argument points to,
--- and the member. `cast`: the type to which the kernel converts it. Or `compute`: generates code that leaves the field
--- in a register, extended to 64 bits according to its type, and may use r5.
---@class ArgumentField
---@field [1]? integer
---@field [2] string?
---@field [3] string|string[]? alternatives, as kernels differ
---@field cast? 'i32'
---@field compute? fun(a: Asm, to: integer)
---@field write? fun(a: Asm, to: integer, off: integer, task: integer) see Source.write; it cannot be loaded

local function task(argument, member) return { argument, 'task_struct', member } end

local function fields_of_task(argument, prefix)
  return {
    [prefix .. 'comm'] = task(argument, 'comm'),
    [prefix .. 'pid'] = task(argument, 'pid'),
    [prefix .. 'prio'] = task(argument, 'prio'),
  }
end

local function union(...)
  local all = {}
  for _, one in ipairs { ... } do
    for name, from in pairs(one) do all[name] = from end
  end
  return all
end

local CPU = { 'thread_info.cpu', 'cpu' } -- before Linux 5.16 it was in the task_struct
local WAKEUP = union(fields_of_task(0, ''), { target_cpu = task(0, CPU) })
local SOFTIRQ = { vec = { 0 } }
local REQUEST = union(computed.REQUEST, { bytes = { 0, 'request', '__data_len' } })

---@type table<string, table<string, ArgumentField>>
local EVENTS = {
  ['sched:sched_switch'] = union(fields_of_task(1, 'prev_'), fields_of_task(2, 'next_'),
    { prev_state = computed.PREV_STATE }),
  ['sched:sched_wakeup'] = WAKEUP,
  ['sched:sched_wakeup_new'] = WAKEUP,
  ['sched:sched_waking'] = WAKEUP,
  ['sched:sched_migrate_task'] = union(fields_of_task(0, ''), { orig_cpu = task(0, CPU), dest_cpu = { 1 } }),
  ['sched:sched_stat_runtime'] = { pid = task(0, 'pid'), runtime = { 1 } },
  ['raw_syscalls:sys_enter'] = { id = { 1 }, args = computed.SYSCALL_ARGUMENTS },
  ['raw_syscalls:sys_exit'] = { id = { 0, 'pt_regs', { 'orig_ax', 'syscallno' }, cast = 'i32' }, ret = { 1 } },
  ['irq:irq_handler_entry'] = { irq = { 0 } },
  ['irq:irq_handler_exit'] = { irq = { 0 }, ret = { 2 } },
  ['irq:softirq_entry'] = SOFTIRQ,
  ['irq:softirq_exit'] = SOFTIRQ,
  ['irq:softirq_raise'] = SOFTIRQ,
  ['block:block_getrq'] = computed.BIO,
  ['block:block_rq_insert'] = REQUEST,
  ['block:block_rq_issue'] = REQUEST,
  ['block:block_rq_complete'] = computed.COMPLETION,
}

local Arguments = source.derive {}

--- Returns the source of an event's fields. It refuses fields that cannot be told from the arguments.
---@param event string "sys:name"
---@param options? SourceOptions
---@return Source
function arguments.of(event, options)
  return Arguments:with(options, { event = event, from = EVENTS[event] or {} })
end

--- Returns where a field comes from, with the offset and size of a member.
local function resolve(self, field)
  local from = self.from[field.name]
  if not from then asm.refuse("the arguments of %s do not have '%s'", self.event, field.name) end
  if from.write then asm.refuse("'%s' is an array", field.name) end
  if not from[2] then return from end
  return from, types.member_of(from[2], from[3])
end

function Arguments:load(a, size, to, field, at)
  local from, offset, width = resolve(self, field)
  if from.compute then
    if at > 0 or size ~= field.size then asm.refuse("'%s' is not an array", field.name) end
    return from.compute(a, to)
  end
  a:load(8, to, CONTEXT, 8 * from[1])
  if not from[2] then
    if at > 0 then asm.refuse("'%s' is not an array", field.name) end
    if size < 8 then a:extend(to, size * 8, false) end
  elseif from.cast then
    a:load(4, to, to, offset)
    a:extend(to, 32, true)
  else
    if width ~= field.size then asm.refuse("'%s' has another size in this kernel", field.name) end
    a:load(size, to, to, offset + at)
  end
end

function Arguments:write(a, field, to, off, task)
  local from = self.from[field.name]
  if not from or not from.write then return false end
  from.write(a, to, off, task)
  return true
end

function Arguments:address(a, to, field)
  local from, offset = resolve(self, field)
  if not offset then asm.refuse("'%s' is not an array", field.name) end
  a:load(8, to, CONTEXT, 8 * from[1])
  a:alu('add', to, offset)
end

return arguments
