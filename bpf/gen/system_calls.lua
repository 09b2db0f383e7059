-- SPDX-License-Identifier: GPL-2.0-only
--- Tracepoints of single system calls, syscalls:sys_enter_* and syscalls:sys_exit_*. The kernel makes them from the
--- tracepoints of all system calls, sys_enter and sys_exit: perf's handler there looks whether the number is wanted.
---
--- Programs do the same. One program on sys_enter, and one on sys_exit, looks the number up in an array of programs and
--- jumps to the first one of this system call, which jumps to the next one at its end. So calls that nobody wants pay
--- for one short program, however many events there are.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local libbpf = require 'bindings.bpf.libbpf'
local names = require 'bindings.base.number_names'
local program = require 'bpf.gen.program'
local types = require 'bpf.gen.kernel_types'

local system_calls = {}

--- Members of struct pt_regs: the arguments of a system call on x86-64.
system_calls.REGISTERS = { 'di', 'si', 'dx', 'r10', 'r8', 'r9' }

local COMPAT = 2 -- TS_COMPAT: a system call of a 32-bit program, which is none of these events
local NUMBER, FIRST = 8, 16 -- offsets in a record: of __syscall_nr, and of the result or the arguments, of 8 bytes each
local NUMBERS = 512 -- those of system calls are less; those of x32 programs, which are none of these events, are larger
local PLACES = 512 -- for the programs that programs jump to
local MOST = 32 -- programs of an event: the kernel limits jumps

---@class SystemCall
---@field tracepoint string 'sys_enter' or 'sys_exit'
---@field nr integer

--- Returns the raw tracepoint of a system call's event and the name in it, such as 'sys_enter' and 'openat'; nil for
--- other events.
---@param event string "sys:name"
---@return string? tracepoint
---@return string? name
function system_calls.parts(event)
  local tracepoint, name = event:match '^syscalls:(sys_%a+)_(.+)$'
  if tracepoint == 'sys_enter' or tracepoint == 'sys_exit' then return tracepoint, name end
end

--- Returns what an event is; nil if it is not one of a single system call. Refuses what this machine does not know.
---@param event string "sys:name"
---@return SystemCall?
function system_calls.of(event)
  local tracepoint, name = system_calls.parts(event)
  if not tracepoint then return end
  if ffi.arch ~= 'x64' then asm.refuse('the arguments of system calls are known on x86-64 only') end
  local nr = names.traced_syscall(name) or asm.refuse('libseccomp does not know the number of %s', name)
  return { tracepoint = tracepoint, nr = nr }
end

--- Returns whether an event is a system call: it happens in a task that is alive, and never interrupts itself.
---@param event string "sys:name"
---@return boolean
function system_calls.is_one(event) return event:match '^raw_syscalls:' ~= nil or event:match '^syscalls:' ~= nil end

--- Returns where a field comes from, as arguments.lua says; nil if it cannot be told. Linux 6.19 adds strings.
---@param call SystemCall
---@param field Field
---@return ArgumentField?
function system_calls.field(call, field)
  if field.offset == NUMBER then return { compute = function(a, to) a:alu('mov', to, call.nr) end } end
  if field.offset < FIRST or field.size ~= 8 then return end
  if call.tracepoint == 'sys_exit' then return { 1 } end
  return { 0, 'pt_regs', system_calls.REGISTERS[(field.offset - FIRST) / 8 + 1] }
end

--- Generates code that jumps if the current task, whose structure is in a register, calls as a 32-bit program. Uses r2.
---@param a Asm
---@param task integer register
---@param target string label
function system_calls.if_compat(a, task, target)
  local status, size = types.member('task_struct', 'thread_info.status')
  a:load(size, 2, task, status)
  a:jump('&', 2, COMPAT, target)
end

local COMPAT_BIT, MARK_BIT = 1, 29 -- numbers of i386 have this bit in raw_syscalls, so that none is one of x86_64

--- Generates code that turns a thread's status in a register into the mark of a number.
---@param a Asm
---@param status integer register
function system_calls.to_mark(a, status)
  a:alu('and', status, COMPAT)
  a:alu('lsh', status, MARK_BIT - COMPAT_BIT)
end

--- Generates to = the mark of the numbers of the current task, whose structure is in a register.
---@param a Asm
---@param to integer
---@param task integer register
function system_calls.mark(a, to, task)
  local status, size = types.member('task_struct', 'thread_info.status')
  a:load(size, to, task, status)
  system_calls.to_mark(a, to)
end

--- Generates code that leaves the number of the system call in a register, as 32 bits without a sign.
---@param a Asm
---@param to integer
---@param context integer register: the context of a program on sys_enter or sys_exit
---@param tracepoint string
function system_calls.number(a, to, context, tracepoint)
  if tracepoint == 'sys_enter' then
    a:load(8, to, context, 8)
  else
    a:load(8, to, context, 0)
    a:load(8, to, to, (types.member('pt_regs', 'orig_ax')))
  end
  a:extend(to, 32, false)
end

--- A count of the system calls of i386.
---@class I386Count
---@field cells Descriptor
---@field link Descriptor
local I386Count = {}
I386Count.__index = I386Count

--- Attaches a program that counts the system calls of i386 in all tasks, or refuses.
---@return I386Count
function system_calls.count_i386()
  local lib, missing = libbpf.open()
  if not lib then asm.refuse('%s', missing) end
  local a, cells = asm.new(), program.mapped(8, 'i386_count')
  a:call 'get_current_task_btf'
  system_calls.if_compat(a, 0, 'i386')
  a:go 'done'
  a:label 'i386'
  a:map_value(1, cells, 0)
  a:alu('mov', 2, 1)
  a:atomic_add(8, 1, 0, 2)
  a:done()
  local link = program.attach(program.load(a, { type = 'tracing', name = 'i386_count',
    tracepoint = types.tracepoint 'sys_enter' }))
  return setmetatable({ cells = cells, link = link }, I386Count)
end

--- Stops counting.
---@return integer calls
function I386Count:finish()
  self.link:close()
  return tonumber(ffi.cast('uint64_t *', self.cells.bytes)[0])
end

-- The programs of a run -----------------------------------------------------------------------------

--- The programs on a raw tracepoint.
---@class CallPrograms
---@field array Descriptor the first program of each system call, by number, and the ones after others
---@field lists table<integer, Descriptor[]> attached programs, by number
---@field loaded table<integer, integer> how many were loaded, by number
---@field made integer places that programs jump to
---@field attached integer
---@field link? Descriptor

--- The programs of a run that are for single system calls.
---@class SystemCalls
---@field _of table<string, CallPrograms> by tracepoint
local SystemCalls = {}
SystemCalls.__index = SystemCalls

---@return SystemCalls
function system_calls.new() return setmetatable({ _of = {} }, SystemCalls) end

--- Generates the jump to the next program of the same event, at the end of one. r6 is the context. Returns the place
--- from which it is taken.
---@param a Asm
---@param call SystemCall
---@return integer
function SystemCalls:chain(a, call)
  local of = self._of[call.tracepoint]
  if not of then
    of = { array = program.programs(NUMBERS + PLACES, 'calls'), lists = {}, loaded = {}, made = 0, attached = 0 }
    self._of[call.tracepoint] = of
  end
  local n = (of.loaded[call.nr] or 0) + 1
  if n > MOST or of.made == PLACES then asm.refuse 'too many programs are for system calls' end
  of.loaded[call.nr], of.made = n, of.made + 1
  local place = NUMBERS + of.made - 1
  a:alu_r('mov', 1, asm.CONTEXT)
  a:map(2, of.array)
  a:alu('mov', 3, place)
  a:call 'tail_call'
  return place
end

--- Loads the program that jumps to those of the events.
local function load_first(of, tracepoint)
  local a = asm.new()
  system_calls.number(a, 3, 1, tracepoint)
  a:jump('>=', 3, NUMBERS, 'done')
  a:map(2, of.array)
  a:call 'tail_call'
  a:done()
  return program.load(a, { type = 'tracing', name = 'calls_' .. program.short(tracepoint),
    tracepoint = types.tracepoint(tracepoint) })
end

--- Puts the programs of a system call into their places.
local function put(of, nr)
  local at = nr
  for _, loaded in ipairs(of.lists[nr]) do
    program.put(of.array, at, loaded)
    at = loaded.place
  end
  program.put(of.array, at, nil)
end

--- Attaches a program to its event.
---@param loaded Descriptor
---@return { close: fun(self) } link
function SystemCalls:attach(loaded)
  local call = loaded.call
  local of = self._of[call.tracepoint]
  local list = of.lists[call.nr] or {}
  of.lists[call.nr] = list
  list[#list + 1] = loaded
  put(of, call.nr)
  of.link = of.link or program.attach(load_first(of, call.tracepoint))
  of.attached = of.attached + 1
  return { close = function()
    for i, one in ipairs(list) do
      if one == loaded then table.remove(list, i) end
    end
    put(of, call.nr)
    of.attached = of.attached - 1
    if of.attached > 0 then return end
    of.link:close()
    of.link = nil
  end }
end

return system_calls
