-- SPDX-License-Identifier: GPL-2.0-only
--- Targets: the threads or control groups to which a run is limited. A program on a tracepoint runs in all tasks, so
--- it first looks whether the current one is a target: an event belongs to the task in which, or in whose time, it
--- happens. That is what the kernel does for a perf event of a thread or a control group.
---
--- Threads are marked in a byte each, those of the start by the session. New ones inherit the mark at their first
--- wakeup, which is before they run and which also threads have that the kernel creates for a program. A thread ends as
--- a target where perf removes its events from it, in the middle of its exit.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local program = require 'bpf.gen.program'
local sys = require 'bindings.base.sys'
local types = require 'bpf.gen.kernel_types'

local CONTEXT = asm.CONTEXT
local targets = {}

local MARKED, AT_EXEC = 1, 2 -- the second: it becomes a target when it executes the workload's command
local MAX_GROUPS = 64
local MAX_GROUPS_OF_THREADS = 65536
local COMM_END = 8 -- offset of the second half of a name
local WAITING = 'pt-exec\0' -- of "profscript-exec", the name of a child that waits to become the workload

---@class Targets
---@field marks? Descriptor of threads: a byte for each id
---@field limits? Descriptor of threads: two words for programs, the time when the session begins, which it sets itself
--- right before a workload starts, and the one at which it ends
---@field check fun(self, a: Asm, off: string, is_exit?: boolean) generates code that jumps unless the current task is a
--- target; uses r0 to r5. is_exit: see ProbeSpec
local Threads = {}
Threads.__index = Threads

--- Generates code that makes a register the address of the mark of the thread whose structure is in another one. Uses
--- r5.
local function mark_of(self, a, to, task, none)
  a:load(4, 5, task, (types.member('task_struct', 'pid')))
  a:jump('>=', 5, sys.PIDS_MAX, none)
  a:map_value(to, self.marks, 0)
  a:alu_r('add', to, 5)
end

--- Returns the offset in the task of the pointer to its perf events, which is 0 after their end.
local function perf_context()
  local offset, size = types.member('task_struct', 'perf_event_ctxp')
  return offset + (size > 8 and 8 or 0) -- before Linux 6.2 there were two: hardware's, and the others
end

function Threads:check(a, off, is_exit)
  a:call 'get_current_task_btf'
  mark_of(self, a, 1, 0, off)
  a:load(1, 1, 1, 0)
  a:jump('!=', 1, MARKED, off)
  if is_exit then return end -- before or after perf removes its events, depending on the kernel
  types.cast(a, 0, 'task_struct')
  a:load(8, 1, 0, perf_context())
  a:jump('==', 1, 0, off)
end

--- Generates code that jumps unless the thread whose id is in a register is a target. Uses r1.
---@param a Asm
---@param register integer
---@param none string label
function Threads:check_id(a, register, none)
  a:jump('>=', register, sys.PIDS_MAX, none)
  a:map_value(1, self.marks, 0)
  a:alu_r('add', 1, register)
  a:load(1, 1, 1, 0)
  a:jump('!=', 1, MARKED, none)
end

--- Generates code for a CPU that leaves the task in r7, after it had entered the one in r1: another one, so a switch is
--- missing. Goes to `ignored` if only threads are wanted, and neither task is one of them. Uses r2.
---@param a Asm
---@param threads? ThreadTargets nil: all
---@param ignored string label
function targets.check_missing(a, threads, ignored)
  if not threads then return end
  local ours = a:new_label()
  a:alu_r('mov', 2, 1)
  for _, task in ipairs { 7, 2 } do
    local other = a:new_label()
    threads:check_id(a, task, other)
    a:go(ours)
    a:label(other)
  end
  a:go(ignored)
  a:label(ours)
end

--- Loads a program on a tracepoint.
local function add_program(self, tracepoint, body)
  local a = asm.new()
  a:alu_r('mov', CONTEXT, 1)
  body(a)
  a:done()
  local loaded = program.load(a, { type = 'tracing', name = 'target_' .. program.short(tracepoint),
    tracepoint = types.tracepoint(tracepoint) })
  table.insert(self._programs, loaded)
end

--- A new thread has the mark of its creator. A thread id that is used again loses that of its former owner.
local function inherit(self, inherits)
  add_program(self, 'sched_wakeup_new', function(a)
    a:load(8, 7, CONTEXT, 0)
    a:alu('mov', 8, 0)
    if inherits then
      a:call 'get_current_task_btf'
      mark_of(self, a, 1, 0, 'inherited')
      a:load(1, 8, 1, 0)
      a:label 'inherited'
    end
    mark_of(self, a, 1, 7, 'done')
    a:store(1, 1, 0, 8)
  end)
end

--- perf's events of a workload begin in exec(), right before the new name is set.
local function begin_at_exec(self)
  add_program(self, 'task_rename', function(a)
    a:load(8, 7, CONTEXT, 0)
    mark_of(self, a, 8, 7, 'done')
    a:load(1, 1, 8, 0)
    a:jump('!=', 1, AT_EXEC, 'done')
    a:load(8, 1, 7, types.member('task_struct', 'comm') + COMM_END)
    a:value(2, ffi.cast('const uint64_t *', WAITING)[0])
    a:jump_r('!=', 1, 2, 'done')
    a:store_value(1, 8, 0, MARKED)
  end)
end

--- Generates r7 = the former id of a thread that executes a program, and r8 = its new one, at sched_process_exec.
---@param a Asm
function targets.load_ids(a)
  a:load(8, 7, CONTEXT, 8)
  a:extend(7, 32, false)
  a:load(8, 8, CONTEXT, 0)
  a:load(4, 8, 8, (types.member('task_struct', 'pid')))
end

--- A thread that is not the first one of its process gets that one's id when it executes another program.
local function follow_ids(self)
  add_program(self, 'sched_process_exec', function(a)
    targets.load_ids(a)
    a:jump_r('==', 7, 8, 'done')
    for _, id in ipairs { 7, 8 } do a:jump('>=', id, sys.PIDS_MAX, 'done') end
    a:map_value(1, self.marks, 0)
    a:alu_r('mov', 2, 1)
    a:alu_r('add', 1, 7)
    a:alu_r('add', 2, 8)
    a:load(1, 9, 1, 0)
    a:store_value(1, 1, 0, 0)
    a:store(1, 2, 0, 9)
  end)
end

--- Returns threads, none of which is marked yet. Refuses without BPF.
---@param inherits boolean include threads and processes that they create
---@param at_exec boolean the target is a workload
---@return Targets
function targets.threads(inherits, at_exec)
  local self = setmetatable({ marks = program.mapped(sys.PIDS_MAX, 'targets'),
    limits = program.mapped(16, 'target_limits'), _programs = {}, _links = {} }, Threads)
  inherit(self, inherits)
  if at_exec then begin_at_exec(self) end
  follow_ids(self)
  return self
end

--- Attaches the programs that keep the marks up to date.
function Threads:attach()
  for i, loaded in ipairs(self._programs) do self._links[i] = program.attach(loaded) end
end

function Threads:close()
  for _, link in ipairs(self._links) do link:close() end
end

-- Threads of control groups -------------------------------------------------------------------------

--- Groups to which some may be added while programs run.
---@class Groups
---@field map Descriptor a hash whose keys are their ids
---@field made ffi.cdata* uint64_t *: how many groups the machine has made since the programs run

---@class GroupThreads: Targets
---@field groups Groups
local GroupThreads = setmetatable({}, { __index = Threads })
GroupThreads.__index = GroupThreads

--- Generates code that goes on if the group whose id is in r1 is one of ours, and jumps to `none` otherwise. Uses r0 to
--- r5.
local function find_id(self, a, none)
  local key = a:take(8)
  a:store(8, asm.FRAME, key, 1)
  a:map(1, self.groups.map)
  a:address(2, asm.FRAME, key)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, none)
  a:give(key, 8)
end

--- The same for the group at r1.
local function find_group(self, a, none)
  a:load(8, 1, 1, (types.member('cgroup', 'kn')))
  a:load(8, 1, 1, (types.member('kernfs_node', 'id')))
  find_id(self, a, none)
end

--- A thread has the mark of the group that it is in where the tracepoint has it as an argument.
local function mark_argument(self, tracepoint, argument)
  add_program(self, tracepoint, function(a)
    a:load(8, 7, CONTEXT, 8 * argument)
    types.cast(a, 7, 'task_struct')
    a:load(4, 8, 0, (types.member('task_struct', 'pid')))
    a:jump('==', 8, 0, 'done')
    a:jump('>=', 8, sys.PIDS_MAX, 'done')
    a:load(8, 1, 0, (types.member('task_struct', 'cgroups')))
    a:load(8, 1, 1, (types.member('css_set', 'dfl_cgrp')))
    a:alu('mov', 7, 0)
    find_group(self, a, 'other')
    a:alu('mov', 7, MARKED)
    a:label 'other'
    a:map_value(1, self.marks, 0)
    a:alu_r('add', 1, 8)
    a:store(1, 1, 0, 7)
  end)
end

--- A group within one of ours is one of ours. Others may be, too: their names say that.
local function follow_groups(self)
  local made = program.mapped(8, 'groups_made')
  self.groups = { map = program.hash(8, 8, MAX_GROUPS_OF_THREADS, 'target_groups'), _made = made,
    made = ffi.cast('uint64_t *', made.bytes) }
  add_program(self, 'cgroup_mkdir', function(a)
    a:map_value(1, made, 0)
    a:alu('mov', 2, 1)
    a:atomic_add(8, 1, 0, 2)
    a:load(8, 7, CONTEXT, 0)
    types.cast(a, 7, 'cgroup')
    a:alu_r('mov', 7, 0)
    a:load(8, 1, 7, (types.member('cgroup', 'self.parent')))
    a:load(8, 1, 1, (types.member('cgroup_subsys_state', 'cgroup')))
    find_group(self, a, 'done')
    local key = a:take(8)
    a:load(8, 1, 7, (types.member('cgroup', 'kn')))
    a:load(8, 1, 1, (types.member('kernfs_node', 'id')))
    a:store(8, asm.FRAME, key, 1)
    a:map(1, self.groups.map)
    a:address(2, asm.FRAME, key)
    a:address(3, asm.FRAME, key)
    a:alu('mov', 4, 0)
    a:call 'map_update_elem'
    a:give(key, 8)
  end)
end

--- Adds groups. Their threads get marks when they are next switched to, or from mark().
---@param ids number[]
function GroupThreads:add(ids)
  for _, id in ipairs(ids) do program.set(self.groups.map, ffi.new('uint64_t[1]', id), ffi.new('uint64_t[1]', id)) end
end

--- Marks threads that are in the groups now.
---@param tids integer[]
function GroupThreads:mark(tids)
  for _, tid in ipairs(tids) do
    if tid > 0 and tid < sys.PIDS_MAX then self.marks.bytes[tid] = MARKED end
  end
end

--- Returns the threads of control groups, to which add() adds some. The kernel moves threads between groups, also new
--- ones, before they run: what counts is the group when a thread is switched to. Refuses without BPF.
---@return GroupThreads
function targets.group_threads()
  local self = setmetatable({ marks = program.mapped(sys.PIDS_MAX, 'targets'),
    limits = program.mapped(16, 'target_limits'), _programs = {}, _links = {} }, GroupThreads)
  follow_groups(self)
  mark_argument(self, 'sched_wakeup_new', 0)
  mark_argument(self, 'cgroup_attach_task', 2)
  mark_argument(self, 'sched_switch', 2)
  return self
end

---@class GroupTasks: Targets
---@field groups Groups
local GroupTasks = { add = GroupThreads.add, attach = Threads.attach, close = Threads.close }
GroupTasks.__index = GroupTasks

function GroupTasks:check(a, off)
  a:call 'get_current_cgroup_id'
  a:alu_r('mov', 1, 0)
  find_id(self, a, off)
end

--- Returns the tasks in control groups, to which add() adds some. Refuses without BPF.
---@return GroupTasks
function targets.group_tasks()
  local self = setmetatable({ _programs = {}, _links = {} }, GroupTasks)
  follow_groups(self)
  return self
end

-- Control groups ------------------------------------------------------------------------------------

---@class GroupTargets: Targets
local Groups = {}
Groups.__index = Groups

function Groups:check(a, off)
  local inside = a:new_label()
  for level, ids in pairs(self._levels) do
    a:alu('mov', 1, level)
    a:call 'get_current_ancestor_cgroup_id'
    for _, id in ipairs(ids) do
      a:value(1, id)
      a:jump_r('==', 0, 1, inside)
    end
  end
  a:go(off)
  a:label(inside)
end

function Groups:attach() end -- luacheck: no self
function Groups:close() end -- luacheck: no self

--- Returns the tasks in control groups, and in the groups inside these. Refuses too many.
---@param list { id: number, level: integer }[] level: of the hierarchy; that of the root is 0
---@return Targets
function targets.groups(list)
  if #list > MAX_GROUPS then asm.refuse('they are those of more than %d control groups', MAX_GROUPS) end
  local levels = {}
  for _, group in ipairs(list) do
    levels[group.level] = levels[group.level] or {}
    table.insert(levels[group.level], group.id)
  end
  return setmetatable({ _levels = levels }, Groups)
end

return targets
