-- SPDX-License-Identifier: GPL-2.0-only
--- The types of the running kernel (BTF): offsets of structure members, and the ids of tracepoints.
local asm = require 'bpf.gen.asm'
local btf = require 'bindings.bpf.btf'

local types = {}

--- Returns the kernel's types, or refuses.
local function kernel()
  local all, missing = btf.kernel()
  return all or asm.refuse('%s', missing)
end

--- Returns the id of a tracepoint's type, for programs with typed arguments.
---@param name string without its system
---@return integer
function types.tracepoint(name)
  return kernel():find('btf_trace_' .. name, btf.KIND.TYPEDEF)
    or asm.refuse("the kernel's BTF has no tracepoint '%s'", name)
end

--- Returns the number of a tracepoint's arguments.
---@param name string without its system
---@return integer
function types.arguments(name)
  local all = kernel()
  local pointer = all:resolve(types.tracepoint(name))
  return all:parameters(pointer.type) - 1 -- without that of whoever attaches
end

--- Returns the types of a tracepoint's arguments, see Btf:parameter_types().
---@param name string without its system
---@return string[]
function types.argument_types(name)
  local all = kernel()
  local list = all:parameter_types(all:resolve(types.tracepoint(name)).type)
  table.remove(list, 1) -- that of whoever attaches
  return list
end

--- Returns the id of a variable, or refuses.
---@param name string
---@return integer
function types.variable(name)
  return kernel():find(name, btf.KIND.VAR) or asm.refuse("the kernel's BTF has no variable %s", name)
end

local enums = {} -- by name

--- Returns the enumerators of an enumeration of the kernel with their values; an empty table if it has none.
---@param name string
---@return table<string, integer>
function types.enumerators(name)
  enums[name] = enums[name] or kernel():enumerators(name)
  return enums[name]
end

local structs = {} -- members by name, by struct

local function members_of(name)
  local members = structs[name]
  if members then return members end
  local all = kernel()
  local id = all:find(name, btf.KIND.STRUCT) or asm.refuse("the kernel's BTF has no struct %s", name)
  members = {}
  for _, member in ipairs(all:members(id)) do members[member.name] = member end
  structs[name] = members
  return members
end

--- Returns the offset and the size of a structure's member, or refuses.
---@param struct string
---@param path string member, or member.member...
---@return integer offset bytes
---@return integer size bytes
function types.member(struct, path)
  local first, rest = path:match '^([^.]+)%.?(.*)$'
  local member = members_of(struct)[first]
  if not member or member.width > 0 then asm.refuse('struct %s of this kernel has no member %s', struct, first) end
  local all, offset = kernel(), member.offset / 8
  if rest == '' then return offset, all:size(member.type) end
  local inner = all:resolve(member.type)
  local at, size = types.member(all:name_at(inner.name_off), rest)
  return offset + at, size
end

--- Returns the offset and the size of the first of several members that this kernel has, or refuses.
---@param struct string
---@param paths string|string[]
---@return integer offset bytes
---@return integer size bytes
function types.member_of(struct, paths)
  local why
  for _, path in ipairs(type(paths) == 'table' and paths or { paths }) do
    local place, reason = asm.attempt(function() return { types.member(struct, path) } end)
    if place then return place[1], place[2] end
    why = why or reason
  end
  asm.refuse('%s', why)
end

local PER_CPU = '.data..percpu'

--- Returns how far the preempt_count of a CPU is from its run queue, or refuses. Many kernels do not tell BPF where
--- per-CPU variables are, but the current task knows the run queue of its CPU.
---@return integer bytes
function types.preempt_distance()
  local variables = kernel():variables(PER_CPU)
  local count, offset = variables.__preempt_count, 0
  if not count then -- Linux 6.2 to 6.14
    count = variables.pcpu_hot or asm.refuse("the kernel's BTF does not have the preempt_count")
    offset = types.member('pcpu_hot', 'preempt_count')
  end
  local queues = variables.runqueues or asm.refuse("the kernel's BTF does not have the run queues")
  return count.offset + offset - queues.offset
end

--- Returns whether types.cast() makes any number a pointer (Linux 6.2).
---@return boolean
function types.can_cast() return types.has_function 'bpf_rdonly_cast' end

--- Returns the id of a function of the kernel for Asm:call_kernel().
---@param name string
---@return integer
function types.kernel_function(name)
  return kernel():find(name, btf.KIND.FUNC) or asm.refuse('the kernel has no %s', name)
end

--- Returns whether the kernel has a function.
---@param name string
---@return boolean
function types.has_function(name) return kernel():find(name, btf.KIND.FUNC) ~= nil end

--- Generates r0 = the pointer in a register, if need be as one that the verifier does not trust: when a program loads a
--- pointer through one that it trusts, such as the current task or an argument, it searches all types by name, for 1 to
--- 3 ms. The processor executes the same loads. Uses r1 to r5.
---@param a Asm
---@param register integer
---@param struct string what it points to
---@return boolean cast whether this kernel can do it (Linux 6.2)
function types.cast(a, register, struct)
  local all = kernel()
  local cast = all:find('bpf_rdonly_cast', btf.KIND.FUNC)
  if cast then
    a:alu_r('mov', 1, register)
    a:alu('mov', 2, all:find(struct, btf.KIND.STRUCT) or asm.refuse("the kernel's BTF has no struct %s", struct))
    a:call_kernel(cast)
  elseif register ~= 0 then
    a:alu_r('mov', 0, register)
  end
  return cast ~= nil
end

--- Generates code that puts the preempt_count of this CPU into r0. Uses r1 to r5.
---@param a Asm
---@param task? integer register of the current task; nil: it is not known yet
function types.preempt_count(a, task)
  local all, distance = kernel(), types.preempt_distance()
  if not task then
    a:call 'get_current_task_btf'
    task = 0
  end
  local can_cast = types.cast(a, task, 'task_struct')
  a:load(8, 1, 0, (types.member('task_struct', 'se.cfs_rq')))
  a:load(8, 1, 1, (types.member('cfs_rq', 'rq')))
  a:alu('add', 1, distance)
  if can_cast then
    local _, _, id = all:resolve(all:find('atomic_t', btf.KIND.TYPEDEF))
    a:alu('mov', 2, id)
    a:call_kernel(all:find('bpf_rdonly_cast', btf.KIND.FUNC))
    a:load(4, 0, 0, 0)
  else
    local slot = a:take(8)
    a:alu_r('mov', 3, 1)
    a:alu_r('mov', 1, asm.FRAME)
    a:alu('add', 1, slot)
    a:alu('mov', 2, 4)
    a:call 'probe_read_kernel'
    a:load(4, 0, asm.FRAME, slot)
    a:give(slot, 8)
  end
end

return types
