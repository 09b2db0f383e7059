-- SPDX-License-Identifier: GPL-2.0-only
--- Source of programs on a tracepoint itself (type tracing): its fields are read from the tracepoint's arguments,
--- before any record is made. Such programs run for every event, also for those in interrupts that hit another program.
---
--- The kernel does not describe how a tracepoint's fields come from its arguments, so a table names them for frequent
--- events, with code for the fields that the kernel computes, such as sched_switch's prev_state.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local computed = require 'bpf.gen.computed'
local source = require 'bpf.gen.source'
local system_calls = require 'bpf.gen.system_calls'
local types = require 'bpf.gen.kernel_types'

local CONTEXT = asm.CONTEXT
local IDLE = ffi.cast('const uint64_t *', 'swapper')[0]
local arguments = {}

--- Where a field comes from: the number of an argument; for a member, also the structure that the argument points to,
--- and the member. `cast`: the type to which the kernel converts it. Or `compute`: generates code that leaves the field
--- in a register, extended to 64 bits according to its type, and may use r5.
---@class ArgumentField
---@field [1]? integer
---@field [2] string?
---@field [3] string|string[]? alternatives, as kernels differ
---@field cast? 'i32'|'u32'
---@field compute? fun(a: Asm, to: integer, first?: integer) first: see Arguments:prepare()
---@field load? fun(a: Asm, size: integer, to: integer, context: integer, at: integer) see Source.load
---@field address? fun(a: Asm, to: integer, context: integer) beside load
---@field write? fun(a: Asm, to: integer, off: integer, task: integer, context: integer) see Source.write; it cannot be
--- loaded

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

local function member(argument, struct, name, cast) return { argument, struct, name, cast = cast } end

local SKB = { skbaddr = { 0 }, len = member(0, 'sk_buff', 'len') }
local VECTOR = { vector = { 0 } }
local FAULT = { address = { 0 }, ip = member(1, 'pt_regs', 'ip'), error_code = { 2 } }
local ALLOCATION = { call_site = { 0 }, ptr = { 1 } }
local SIZES = { bytes_req = { 2 }, bytes_alloc = { 3 }, gfp_flags = { 4 } }

---@type table<string, table<string, ArgumentField>>
local EVENTS = {
  ['sched:sched_switch'] = union(fields_of_task(1, 'prev_'), fields_of_task(2, 'next_'),
    { prev_state = computed.PREV_STATE }),
  ['sched:sched_wakeup'] = WAKEUP,
  ['sched:sched_wakeup_new'] = WAKEUP,
  ['sched:sched_waking'] = WAKEUP,
  ['sched:sched_migrate_task'] = union(fields_of_task(0, ''), { orig_cpu = task(0, CPU), dest_cpu = { 1 } }),
  ['sched:sched_stat_runtime'] = { pid = task(0, 'pid'), runtime = { 1 } },
  ['raw_syscalls:sys_enter'] = { id = computed.ENTERED, args = computed.SYSCALL_ARGUMENTS },
  ['raw_syscalls:sys_exit'] = { id = computed.LEFT, ret = { 1 } },
  ['irq:irq_handler_entry'] = { irq = { 0 } },
  ['irq:irq_handler_exit'] = { irq = { 0 }, ret = { 2 } },
  ['irq:softirq_entry'] = SOFTIRQ,
  ['irq:softirq_exit'] = SOFTIRQ,
  ['irq:softirq_raise'] = SOFTIRQ,
  ['sched:sched_process_fork'] = { parent_pid = task(0, 'pid'), child_pid = task(1, 'pid') },
  ['sched:sched_process_exit'] = fields_of_task(0, ''),
  ['kmem:kfree'] = ALLOCATION,
  ['kmem:kmem_cache_free'] = ALLOCATION,
  ['kmem:mm_page_alloc'] = { order = { 1 }, gfp_flags = { 2 }, migratetype = { 3 } },
  ['kmem:mm_page_alloc_zone_locked'] = { order = { 1 }, migratetype = { 2 } },
  ['kmem:mm_page_free'] = { order = { 1 } },
  ['kmem:mm_page_pcpu_drain'] = { order = { 1 }, migratetype = { 2 } },
  ['timer:hrtimer_start'] = { hrtimer = { 0 }, ['function'] = member(0, 'hrtimer', 'function') },
  ['timer:hrtimer_cancel'] = { hrtimer = { 0 } },
  ['timer:hrtimer_expire_entry'] = { hrtimer = { 0 }, ['function'] = member(0, 'hrtimer', 'function') },
  ['timer:hrtimer_expire_exit'] = { hrtimer = { 0 } },
  ['timer:timer_start'] = { timer = { 0 }, ['function'] = member(0, 'timer_list', 'function') },
  ['timer:timer_expire_entry'] = { timer = { 0 }, ['function'] = member(0, 'timer_list', 'function') },
  ['timer:timer_expire_exit'] = { timer = { 0 } },
  ['workqueue:workqueue_execute_start'] = { work = { 0 }, ['function'] = member(0, 'work_struct', 'func') },
  ['irq_vectors:local_timer_entry'] = VECTOR,
  ['irq_vectors:local_timer_exit'] = VECTOR,
  ['irq_vectors:reschedule_entry'] = VECTOR,
  ['irq_vectors:call_function_single_entry'] = VECTOR,
  ['exceptions:page_fault_user'] = FAULT,
  ['exceptions:page_fault_kernel'] = FAULT,
  ['net:netif_receive_skb'] = SKB,
  ['net:net_dev_queue'] = SKB,
  ['net:net_dev_xmit'] = { skbaddr = { 0 }, rc = { 1 }, len = { 3 } },
  ['napi:napi_poll'] = { napi = { 0 }, work = { 1 }, budget = { 2 } },
  ['capability:cap_capable'] = { cap = { 3 }, ret = { 4 } },
  ['block:block_getrq'] = computed.BIO,
  ['block:block_rq_insert'] = REQUEST,
  ['block:block_rq_issue'] = REQUEST,
  ['block:block_rq_complete'] = computed.COMPLETION,
}

--- Events whose arguments differ between kernels: the types of the first arguments tell which fields they are.
---@type table<string, { types: string[], fields: table<string, ArgumentField> }[]>
local VARIANTS = {
  ['kmem:kmalloc'] = {
    { types = { 'long unsigned int', ' *', 'size_t', 'size_t', 'gfp_t' }, fields = union(ALLOCATION, SIZES) },
  },
  ['kmem:kmem_cache_alloc'] = {
    { types = { 'long unsigned int', ' *', 'size_t', 'size_t', 'gfp_t' }, fields = union(ALLOCATION, SIZES) },
    { types = { 'long unsigned int', ' *', 'kmem_cache *', 'gfp_t' }, fields = union(ALLOCATION, { -- since Linux 6.1
      bytes_req = member(2, 'kmem_cache', 'object_size', 'u32'), bytes_alloc = member(2, 'kmem_cache', 'size', 'u32'),
      gfp_flags = { 3 },
    }) },
  },
}

--- Returns the fields of an event in this kernel.
local function fields_of(event)
  local variants = VARIANTS[event]
  if not variants then return EVENTS[event] or {} end
  local here = types.argument_types(event:match ':(.*)$')
  for _, variant in ipairs(variants) do
    local fits = true
    for i, name in ipairs(variant.types) do fits = fits and here[i] == name end
    if fits then return variant.fields end
  end
  return {}
end

--- Structures of the first arguments through which programs follow pointers to others.
local FOLLOWED = {
  ['block:block_getrq'] = 'bio', ['block:block_rq_insert'] = 'request', ['block:block_rq_issue'] = 'request',
  ['block:block_rq_complete'] = 'request',
}

local Arguments, Source = source.derive { has_no_record = true }, source.base

--- Returns the source of an event's fields. It refuses fields that cannot be told from the arguments.
---@param event string "sys:name"
---@param options? SourceOptions
---@param typed? TypedEvent an event with typed arguments
---@return Source
function arguments.of(event, options, typed)
  if typed then
    return Arguments:with(options, { event = event, from = typed.from, has_function = typed.from.func ~= nil
      and typed.from.func.compute ~= nil })
  end
  return Arguments:with(options, { event = event, from = fields_of(event), call = system_calls.of(event) })
end

--- Generates code that notes what the loads of this event's fields have in common. r6 is the context. Uses r0 to r5.
--- Jumps to `done` if it is no event after all.
---@param a Asm
function Arguments:prepare(a)
  if self.call then
    self:current(a)
    return system_calls.if_compat(a, 0, 'done')
  end
  if self.has_function then
    a:alu_r('mov', 1, CONTEXT)
    a:call 'get_func_ip'
    self.first = a:take(8)
    return a:store(8, asm.FRAME, self.first, 0)
  end
  if self.event:find '^raw_syscalls:' and ffi.arch == 'x64' then return self:note_i386(a) end
  local struct = FOLLOWED[self.event]
  if not struct then return end
  a:load(8, 1, CONTEXT, 0)
  types.cast(a, 1, struct)
  self.first = a:take(8)
  a:store(8, asm.FRAME, self.first, 0)
end

local FIRST_WITH_TASK = 5.011 -- the first kernel in which programs can follow the current task's pointers

--- Generates code that notes the mark of the number of a system call: of one of i386, or 0.
function Arguments:note_i386(a)
  self.first = a:take(8)
  if self.task or computed.release() >= FIRST_WITH_TASK then
    self:current(a)
    system_calls.mark(a, 1, 0)
    return a:store(8, asm.FRAME, self.first, 1)
  end
  a:store_value(8, asm.FRAME, self.first, 0)
  a:call 'get_current_task'
  a:address(3, 0, (types.member('task_struct', 'thread_info.status')))
  a:alu_r('mov', 1, asm.FRAME)
  a:alu('add', 1, self.first)
  a:alu('mov', 2, 4)
  a:call 'probe_read_kernel'
  a:load(8, 1, asm.FRAME, self.first)
  system_calls.to_mark(a, 1)
  a:store(8, asm.FRAME, self.first, 1)
end

--- Returns where a field comes from, with the offset and size of a member.
local function resolve(self, field)
  local from = self.from[field.name] or self.call and system_calls.field(self.call, field)
  if not from then asm.refuse("the arguments of %s do not have '%s'", self.event, field.name) end
  if from.write then asm.refuse("'%s' is an array, or behind a pointer", field.name) end
  if not from[2] then return from end
  return from, types.member_of(from[2], from[3])
end

function Arguments:load(a, size, to, field, at)
  local from, offset, width = resolve(self, field)
  if from.load then return from.load(a, size, to, CONTEXT, at) end
  if from.compute then
    if at > 0 or size ~= field.size then asm.refuse("'%s' is not an array", field.name) end
    return from.compute(a, to, self.first)
  end
  a:load(8, to, CONTEXT, 8 * from[1])
  if not from[2] then
    if at > 0 then asm.refuse("'%s' is not an array", field.name) end
    if size < 8 then a:extend(to, size * 8, false) end
  elseif from.cast then
    a:load(4, to, to, offset)
    if from.cast == 'i32' then a:extend(to, 32, true) end
  else
    if width ~= field.size then asm.refuse("'%s' has another size in this kernel", field.name) end
    a:load(size, to, to, offset + at)
  end
end

function Arguments:write(a, field, to, off, current)
  local from = self.from[field.name]
  if not from or not from.write then return false end
  from.write(a, to, off, current, CONTEXT)
  return true
end

function Arguments:address(a, to, field)
  local from, offset = resolve(self, field)
  if from.address then return from.address(a, to, CONTEXT) end
  if not offset then asm.refuse("'%s' is not an array", field.name) end
  a:load(8, to, CONTEXT, 8 * from[1])
  a:alu('add', to, offset)
end

local FIRST_PADDED = 5.017 -- the first kernel in which all of a task's name after its end is surely 0

--- Generates r0 = the current task. Uses r1 to r5.
function Arguments:current(a)
  if self.task then return a:load(8, 0, asm.FRAME, self.task) end
  if computed.release() < FIRST_WITH_TASK then asm.refuse('the current task is known since Linux 5.11') end
  a:call 'get_current_task_btf'
end

--- The idle tasks of all CPUs have one name, as in profscript.
function Arguments:comm(a, at)
  local idle, done = a:new_label(), a:new_label()
  local is_padded = computed.release() >= FIRST_PADDED
  if not is_padded then Source.comm(self, a, at) end
  self:current(a)
  a:load(4, 1, 0, (types.member('task_struct', 'pid')))
  a:jump('==', 1, 0, idle)
  for off = 0, is_padded and 8 or -1, 8 do
    a:load(8, 1, 0, types.member('task_struct', 'comm') + off)
    a:store(8, asm.FRAME, at + off, 1)
  end
  a:go(done)
  a:label(idle)
  a:value(0, IDLE)
  a:store(8, asm.FRAME, at, 0)
  a:store_value(8, asm.FRAME, at + 8, 0)
  a:label(done)
end

--- The ids of a task that has been reaped, as at its last switch, are -1 in perf's samples, but not common_pid.
function Arguments:variable(a, name)
  local is_record = name == 'common_pid'
  if is_record then name = '_tid' end
  if name ~= '_tid' and name ~= '_pid' or self.foreign_pids then return Source.variable(self, a, name) end
  local gone, known = a:new_label(), a:new_label()
  local may_be_reaped = not is_record and not system_calls.is_one(self.event)
  self:current(a)
  if may_be_reaped then
    types.cast(a, 0, 'task_struct')
    a:load(8, 1, 0, (types.member('task_struct', 'thread_pid')))
    a:jump('==', 1, 0, gone)
  end
  a:load(4, 0, 0, (types.member('task_struct', name == '_tid' and 'pid' or 'tgid')))
  a:extend(0, 32, true)
  if may_be_reaped then
    a:go(known)
    a:label(gone)
    a:alu('mov', 0, -1)
    a:label(known)
  end
  return 'i32'
end

return arguments
