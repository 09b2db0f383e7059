-- SPDX-License-Identifier: GPL-2.0-only
--- Programs that write the record of a system call's event together with the strings that its arguments point to. The
--- strings are read when the event happens and are part of its record, so they cannot belong to another call, and are
--- lost only with it. The records go to perf's rings, as those of the task filter (bindings/bpf/task_filter.lua).
---
--- What cannot be read as it is has a mark, which is part of the text: `...` after a text that is cut, `<null>`, and
--- `<unreadable>` for memory that is not present or not mapped. A program must not wait until a page is read from disk.
local asm = require 'bpf.gen.asm'
local bit = require 'bit'
local ffi = require 'ffi'
local libbpf = require 'bindings.bpf.libbpf'
local program = require 'bpf.gen.program'
local record_buffers = require 'bpf.gen.record_buffers'
local source = require 'bpf.gen.source'
local system_calls = require 'bpf.gen.system_calls'
local types = require 'bpf.gen.kernel_types'

local CONTEXT, FRAME = asm.CONTEXT, asm.FRAME
local user_strings = {}

local MAX, append = record_buffers.MAX, record_buffers.append_text
local ROOM = MAX + 8 -- bytes that are read, to see that a string is longer, or for a mark
local MAX_LIST, MAX_ELEMENTS = 1024, 32 -- bytes and strings of a list, such as argv, that are followed by `...`

local MAX_CALLS = 65536 -- whose lengths are kept

local CURRENT_CPU = 0xffffffff -- BPF_F_CURRENT_CPU
local FIRST_FIELD = 8 -- offset in the record
local RECORD, END, REGS = record_buffers.RECORD, record_buffers.END, record_buffers.REGS

--- A string of an event.
---@class UserString
---@field name string of the argument
---@field field string of the record
---@field argument integer from 0
---@field is_list? boolean it is an array of strings that ends with a null pointer, such as argv
---@field buffer? BufferRule its bytes have a length
---@field length? integer the argument with the length of a buffer, from 0
---@field is_int? boolean the kernel takes the length as an int
---@field flags? integer the argument with the flags of a receive, from 0
---@field action? integer the argument that says whether the call fills the buffer, from 0

---@class UserStringsSpec
---@field tracepoint string 'sys_enter' or 'sys_exit'
---@field nr integer of the system call
---@field type integer common_type
---@field fields table<string, Field> of the record
---@field arguments string[] names of the system call's arguments
---@field strings UserString[]
---@field numbers UserNumber[]
---@field is_exec boolean it starts another program
---@field own_pid? integer the process whose events are left out
---@field rooms? Descriptor the room of a buffer by thread, see load_rooms()

--- Generates code that appends the string at an address of the program, or a mark.
---@param slot integer place on the stack: the address
local function append_string(a, slot)
  local bad, null, cut, done = a:new_label(), a:new_label(), a:new_label(), a:new_label()
  a:alu_r('mov', 1, RECORD)
  a:alu_r('add', 1, END)
  a:alu('mov', 2, ROOM)
  a:load(8, 3, FRAME, slot)
  a:call 'probe_read_user_str'
  a:jump('s<=', 0, 0, bad)
  a:jump('s>', 0, MAX + 1, cut)
  a:alu_r('add', END, 0)
  a:go(done)
  a:label(cut)
  a:alu('add', END, MAX)
  append(a, '...')
  a:go(done)
  a:label(bad)
  a:load(8, 3, FRAME, slot)
  a:jump('==', 3, 0, null)
  append(a, '<unreadable>')
  a:go(done)
  a:label(null)
  append(a, '<null>')
  a:label(done)
end

--- Generates code that appends the strings of a list, separated by spaces.
---@param slot integer place on the stack: the list's address
local function append_list(a, slot)
  local element = a:take(8)
  local bad, null, cut, done = a:new_label(), a:new_label(), a:new_label(), a:new_label()
  --- Writes over the NUL before the end.
  local function separate()
    a:alu_r('mov', 1, RECORD)
    a:alu_r('add', 1, END)
    a:store_value(1, 1, -1, (' '):byte())
  end
  a:load(8, 3, FRAME, slot)
  a:jump('==', 3, 0, null)
  for i = 0, MAX_ELEMENTS - 1 do
    a:address(1, FRAME, element)
    a:alu('mov', 2, 8)
    a:load(8, 3, FRAME, slot)
    a:alu('add', 3, 8 * i)
    a:call 'probe_read_user'
    a:jump('!=', 0, 0, bad)
    a:load(8, 3, FRAME, element)
    a:jump('==', 3, 0, done)
    if i > 0 then
      separate()
      local room = a:new_label()
      a:jump('<=', END, MAX_LIST, room)
      a:go(cut)
      a:label(room)
    end
    append_string(a, element)
  end
  separate()
  a:label(cut)
  append(a, '...')
  a:go(done)
  a:label(bad)
  append(a, '<unreadable>')
  a:go(done)
  a:label(null)
  append(a, '<null>')
  a:label(done)
  a:give(element, 8)
end

-- What exec() has put into the new address space, between two members of its mm_struct: a string, or a list of strings
-- one after the other. The caller's is gone then, with the registers that pointed to its arguments. The name of the
-- file is right behind the environment.
local EXECUTED = { filename = { 'env_end' }, argv = { 'arg_start', 'arg_end' }, envp = { 'env_start', 'env_end' } }

--- Generates code that appends strings that are one after the other in the program's memory, separated by spaces.
---@param slot integer place on the stack: their address
---@param stop integer place on the stack: their end
local function append_packed(a, slot, stop)
  local before = a:take(8)
  local cut, done = a:new_label(), a:new_label()
  local function separate()
    a:alu_r('mov', 1, RECORD)
    a:alu_r('add', 1, END)
    a:store_value(1, 1, -1, (' '):byte())
  end
  for i = 0, MAX_ELEMENTS - 1 do
    a:load(8, 1, FRAME, slot)
    a:load(8, 2, FRAME, stop)
    a:jump_r('>=', 1, 2, done)
    if i > 0 then
      separate()
      a:jump('>', END, MAX_LIST, cut)
    end
    a:store(8, FRAME, before, END)
    append_string(a, slot)
    a:alu_r('mov', 1, END)
    a:load(8, 2, FRAME, before)
    a:alu_r('sub', 1, 2)
    a:jump('>', 1, MAX + 1, done) -- it is cut, so where the next one begins is not known
    a:load(8, 2, FRAME, slot)
    a:alu_r('add', 2, 1)
    a:store(8, FRAME, slot, 2)
  end
  a:load(8, 1, FRAME, slot)
  a:load(8, 2, FRAME, stop)
  a:jump_r('>=', 1, 2, done)
  separate()
  a:label(cut)
  append(a, '...')
  a:label(done)
  a:give(before, 8)
end

--- Generates code that appends a string or list of a program that exec() has started, or jumps if it has failed.
---@param slot integer place on the stack
---@param failed string label
local function append_executed(a, slot, one, failed)
  local from, stop = EXECUTED[one.name], a:take(8)
  a:load(8, 1, CONTEXT, 8)
  a:jump('!=', 1, 0, failed)
  a:call 'get_current_task_btf'
  a:load(8, 1, 0, (types.member('task_struct', 'mm')))
  for i, place in ipairs { slot, from[2] and stop } do
    a:load(8, 2, 1, (types.member('mm_struct', from[i])))
    a:store(8, FRAME, place, 2)
  end
  if from[2] then append_packed(a, slot, stop) else append_string(a, slot) end
  a:give(stop, 8)
end

--- Generates code that appends the text of an argument.
---@param slot integer place on the stack: its address
---@param spec UserStringsSpec
---@param one UserString
local function append_text(a, slot, spec, one)
  local failed, done = a:new_label(), a:new_label()
  if spec.is_exec and spec.tracepoint == 'sys_exit' and EXECUTED[one.name] then
    append_executed(a, slot, one, failed)
    a:go(done)
    a:label(failed)
    record_buffers.load_argument(a, 1, one.argument)
    a:store(8, FRAME, slot, 1)
  end
  if one.buffer then
    record_buffers.append(a, slot, spec, one)
  elseif one.is_list then
    append_list(a, slot)
  else
    append_string(a, slot)
  end
  a:label(done)
end

--- Generates code that jumps to `done` unless the event is this system call, of a 64-bit program that is not us. Leaves
--- the ids of the current task in r0 and its registers in REGS.
local function select(a, spec, tracepoint)
  a:load(8, REGS, CONTEXT, 0)
  system_calls.number(a, 1, CONTEXT, tracepoint)
  a:jump('!=', 1, spec.nr, 'done')
  a:call 'get_current_task_btf'
  system_calls.if_compat(a, 0, 'done')
  a:call 'get_current_pid_tgid'
  if not spec.own_pid then return end
  a:alu_r('mov', 1, 0)
  a:alu('rsh', 1, 32)
  a:jump('==', 1, spec.own_pid, 'done')
end

--- Generates code that writes the fields of the kernel's own record.
local function write_fields(a, spec)
  local fields = spec.fields
  a:alu('lsh', 0, 32)
  a:alu('or', 0, spec.type)
  a:store(8, RECORD, 0, 0)
  a:store_value(4, RECORD, fields.__syscall_nr.offset, spec.nr)
  local function write(field, register, offset)
    a:load(8, 1, register, offset)
    a:store(field.size, RECORD, field.offset, 1)
  end
  if fields.ret then write(fields.ret, CONTEXT, 8) end
  for i, name in ipairs(spec.arguments) do
    if fields[name] then write(fields[name], REGS, (types.member('pt_regs', system_calls.REGISTERS[i]))) end
  end
end

local function generate(spec, memory, events)
  local a, size = asm.new(), FIRST_FIELD
  a:alu_r('mov', CONTEXT, 1)
  select(a, spec, spec.tracepoint)
  local key, ids = a:take(8), a:take(8)
  a:store(8, FRAME, ids, 0)
  a:store_value(8, FRAME, key, 0)
  a:map(1, memory)
  a:address(2, FRAME, key)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, 'done')
  a:alu_r('mov', RECORD, 0)
  a:load(8, 0, FRAME, ids)
  write_fields(a, spec)
  for _, one in ipairs(spec.numbers) do
    record_buffers.load_argument(a, 3, one.argument)
    a:alu('add', 3, one.offset)
    source.read_user(a, RECORD, spec.fields[one.field].offset, one.size, spec.fields[one.known].offset)
  end
  for _, field in pairs(spec.fields) do size = math.max(size, field.offset + field.size) end
  a:alu('mov', END, size)
  local start, address = ids, key
  for _, one in ipairs(spec.strings) do
    a:store(8, FRAME, start, END)
    record_buffers.load_argument(a, 1, one.argument)
    a:store(8, FRAME, address, 1)
    append_text(a, address, spec, one)
    -- A field of any length: length << 16 | offset.
    a:load(8, 2, FRAME, start)
    a:alu_r('mov', 1, END)
    a:alu_r('sub', 1, 2)
    a:alu('lsh', 1, 16)
    a:alu_r('or', 1, 2)
    a:store(4, RECORD, spec.fields[one.field].offset, 1)
    if one.buffer then append(a, '') end -- perf prints up to a NUL
  end
  a:alu_r('mov', 1, CONTEXT)
  a:map(2, events)
  a:value(3, CURRENT_CPU)
  a:alu_r('mov', 4, RECORD)
  a:alu_r('mov', 5, END)
  a:call 'perf_event_output'
  a:done()
  return a
end

--- Loads the program that keeps the room of a buffer when the call begins; nil if no buffer has one.
local function load_rooms(spec)
  local of
  for _, one in ipairs(spec.strings) do of = of or one.buffer and one.buffer.by_pointer and one end
  if not of or spec.tracepoint ~= 'sys_exit' then return end
  spec.rooms = program.recent(8, 8, MAX_CALLS, 'string_rooms')
  local a = asm.new()
  local key, room = a:take(8), a:take(8)
  a:alu_r('mov', CONTEXT, 1)
  select(a, spec, 'sys_enter')
  a:store(8, FRAME, key, 0)
  record_buffers.load_argument(a, 3, of.length)
  record_buffers.read_int(a, room, 'unknown')
  a:store(8, FRAME, room, 1)
  a:go 'keep'
  a:label 'unknown'
  a:store_value(8, FRAME, room, -1)
  a:label 'keep'
  a:map(1, spec.rooms)
  a:address(2, FRAME, key)
  a:address(3, FRAME, room)
  a:alu('mov', 4, 0)
  a:call 'map_update_elem'
  a:done()
  return program.load(a, { type = 'tracing', name = 'str_rooms', tracepoint = types.tracepoint 'sys_enter' })
end

--- Loads the program of an event, which is not attached yet. Refuses what this kernel cannot do.
---@param spec UserStringsSpec
---@return Descriptor program
---@return Descriptor events the array of perf events to which it writes
---@return Descriptor? rooms another program, which is attached before
function user_strings.load(spec)
  if ffi.arch ~= 'x64' then asm.refuse('the arguments of system calls are known on x86-64 only') end
  local lib, missing = libbpf.open()
  if not lib then asm.refuse('%s', missing) end
  local size = 0
  for _, field in pairs(spec.fields) do size = math.max(size, field.offset + field.size) end
  for _, one in ipairs(spec.strings) do
    local segments = one.buffer and one.buffer.kind and record_buffers.MAX_SEGMENTS or 1
    size = size + (one.is_list and MAX_LIST or 0) + segments * ROOM
  end
  local rooms = load_rooms(spec)
  local memory = program.memory(bit.band(size + 2 * ROOM, -8), 1, 'string_memory')
  local events = program.perf_events(lib.libbpf_num_possible_cpus(), 'string_rings')
  local loaded = program.load(generate(spec, memory, events), { type = 'tracing',
    name = 'str_' .. program.short(spec.tracepoint),
    tracepoint = types.tracepoint(spec.tracepoint) })
  return loaded, events, rooms
end

return user_strings
