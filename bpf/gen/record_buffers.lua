-- SPDX-License-Identifier: GPL-2.0-only
--- Code that appends the buffers of a system call to a record: bytes, vectors and messages. Buffers end where the call
--- says. What lies behind them is never read. The kernel replaces some lengths by those of what did not fit, so another
--- program keeps them when the call begins.
local asm = require 'bpf.gen.asm'
local ffi = require 'ffi'
local system_calls = require 'bpf.gen.system_calls'
local types = require 'bpf.gen.kernel_types'

local CONTEXT, FRAME = asm.CONTEXT, asm.FRAME
local record_buffers = {
  MAX = 256, -- bytes of a string, or of a buffer
  MAX_SEGMENTS = 8, -- segments of a vector that are read
  RECORD = 7, END = 9, -- registers: the record, and its size so far
  REGS = 8, -- register: the task's registers
}

local RECORD, END, REGS, MAX_SEGMENTS = record_buffers.RECORD, record_buffers.END, record_buffers.REGS,
  record_buffers.MAX_SEGMENTS
local SEGMENT = { base = 0, length = 8, size = 16 } -- struct iovec
local MESSAGE = { vector = 16, segments = 24, received = 56, size = 64 } -- struct user_msghdr, in struct mmsghdr
local MAX_MESSAGES, MAX_MESSAGE_SEGMENTS = 4, 2 -- of an array of messages that are read
local VER0 = 64 -- bytes of a struct perf_event_attr without a size
local REQUEST = { size = 16, size_bits = 0x3fff, direction = 30, given = 1 } -- what is in the number of an ioctl
local MSG_TRUNC = 0x20

--- Generates code that appends a text and its NUL to the record.
---@param is_bare? boolean the text ends without the NUL
function record_buffers.append_text(a, text, is_bare)
  local padded = text .. ('\0'):rep(8 - #text % 8)
  a:alu_r('mov', 1, RECORD)
  a:alu_r('add', 1, END)
  for at = 0, #padded - 1, 8 do
    a:value(2, ffi.cast('const uint64_t *', padded:sub(at + 1, at + 8))[0])
    a:store(8, 1, at, 2)
  end
  a:alu('add', END, #text + (is_bare and 0 or 1))
end

--- A buffer that a program appends: its places on the stack.
---@class AppendedBuffer
---@field base integer the address of the bytes, or of the vector
---@field length integer
---@field left integer how many bytes the call has at the most
---@field room integer how many bytes may be appended
---@field is_cut integer 1: there were more

--- Generates code that appends bytes, and goes to `bad` if they cannot be read.
local function append_bytes(a, at, bad)
  local all, fits, finish = a:new_label(), a:new_label(), a:new_label()
  a:load(8, 1, FRAME, at.length)
  a:load(8, 2, FRAME, at.left)
  a:jump_r('<=', 1, 2, all)
  a:alu_r('mov', 1, 2)
  a:label(all)
  a:alu_r('sub', 2, 1)
  a:store(8, FRAME, at.left, 2)
  a:load(8, 3, FRAME, at.room)
  a:jump_r('<=', 1, 3, fits)
  a:alu_r('mov', 1, 3)
  a:store_value(8, FRAME, at.is_cut, 1)
  a:label(fits)
  a:alu_r('sub', 3, 1)
  a:store(8, FRAME, at.room, 3)
  a:alu_r('mov', 2, 1)
  a:jump('==', 2, 0, finish)
  a:jump('>', 2, record_buffers.MAX, bad) -- never
  a:store(8, FRAME, at.length, 2)
  a:alu_r('mov', 1, RECORD)
  a:alu_r('add', 1, END)
  a:load(8, 3, FRAME, at.base)
  a:call 'probe_read_user'
  a:jump('!=', 0, 0, bad)
  a:load(8, 1, FRAME, at.length)
  a:jump('>', 1, record_buffers.MAX, bad) -- never
  a:alu_r('add', END, 1)
  a:label(finish)
end

--- Generates code that reads 8 bytes of the program at an address in r3 to a place on the stack.
local function read_word(a, slot, bad)
  a:address(1, FRAME, slot)
  a:alu('mov', 2, 8)
  a:call 'probe_read_user'
  a:jump('!=', 0, 0, bad)
end

--- Generates code that appends the bytes of a vector.
---@param at AppendedBuffer base and length are those of the vector
---@param most? integer segments
local function append_vector(a, at, bad, done, most)
  local one = { base = a:take(8), length = a:take(8), left = at.left, room = at.room, is_cut = at.is_cut }
  most = most or MAX_SEGMENTS
  for i = 0, most - 1 do
    a:load(8, 1, FRAME, at.length)
    a:jump('<=', 1, i, done)
    for _, part in ipairs { 'base', 'length' } do
      a:load(8, 3, FRAME, at.base)
      a:alu('add', 3, i * SEGMENT.size + SEGMENT[part])
      read_word(a, one[part], bad)
    end
    append_bytes(a, one, bad)
  end
  a:load(8, 1, FRAME, at.length)
  a:jump('<=', 1, most, done)
  a:load(8, 1, FRAME, at.left)
  a:jump('==', 1, 0, done)
  a:store_value(8, FRAME, at.is_cut, 1)
  a:give(one.base, 8)
  a:give(one.length, 8)
end

--- Generates code that appends the bytes of an array of messages.
---@param at AppendedBuffer base and length are those of the array
---@param is_received boolean each message says how many bytes it has
local function append_messages(a, at, bad, done, is_received)
  local one = { base = a:take(8), length = a:take(8), left = at.left, room = at.room, is_cut = at.is_cut }
  local function read(part, slot, i)
    a:load(8, 3, FRAME, at.base)
    a:alu('add', 3, i * MESSAGE.size + MESSAGE[part])
    read_word(a, slot, bad)
  end
  if is_received then -- as many as the result says
    a:load(8, 1, FRAME, at.left)
    a:store(8, FRAME, at.length, 1)
  end
  for i = 0, MAX_MESSAGES - 1 do
    local next_one = a:new_label()
    a:load(8, 1, FRAME, at.length)
    a:jump('<=', 1, i, done)
    a:store_value(8, FRAME, one.left, 0x7fffffff)
    if is_received then
      read('received', one.left, i)
      a:store_value(4, FRAME, one.left + 4, 0)
    end
    read('vector', one.base, i)
    read('segments', one.length, i)
    append_vector(a, one, bad, next_one, MAX_MESSAGE_SEGMENTS)
    a:label(next_one)
  end
  a:load(8, 1, FRAME, at.length)
  a:jump('<=', 1, MAX_MESSAGES, done)
  a:store_value(8, FRAME, at.is_cut, 1)
  a:give(one.base, 8)
  a:give(one.length, 8)
end

function record_buffers.load_argument(a, to, argument)
  a:load(8, to, REGS, (types.member('pt_regs', system_calls.REGISTERS[argument + 1])))
end

--- Generates code that sets how many bytes the call has: of a buffer that it fills, as many as it has written, or as
--- there was room.
local function limit(a, at, spec, one, bad, done)
  local rule = one.buffer
  if not rule.out then return a:store_value(8, FRAME, at.left, 0x7fffffff) end
  if rule.action then
    record_buffers.load_argument(a, 1, one.action)
    a:extend(1, 32, true)
    a:jump('<', 1, rule.action[2], done)
    a:jump('>', 1, rule.action[3], done)
  end
  a:load(8, 1, CONTEXT, 8)
  a:jump((rule.by_pointer or rule.head) and 's<' or 's<=', 1, 0, done)
  if rule.unit then a:alu('mul', 1, rule.unit) end
  if rule.head then a:alu('add', 1, rule.head) end
  if one.buffer.by_pointer then
    a:call 'get_current_pid_tgid'
    a:store(8, FRAME, at.length, 0)
    a:map(1, spec.rooms)
    a:address(2, FRAME, at.length)
    a:call 'map_lookup_elem'
    a:jump('==', 0, 0, bad)
    a:load(8, 1, 0, 0)
    a:jump('s<', 1, 0, bad)
  end
  a:store(8, FRAME, at.left, 1)
end

--- Generates code that reads an int of the program, whose address is in r3, to 8 bytes on the stack, and leaves it
--- in r1.
function record_buffers.read_int(a, slot, bad)
  a:store_value(8, FRAME, slot, 0)
  a:address(1, FRAME, slot)
  a:alu('mov', 2, 4)
  a:call 'probe_read_user'
  a:jump('!=', 0, 0, bad)
  a:load(8, 1, FRAME, slot)
  a:extend(1, 32, true)
end

--- Generates code that sets the length of what an ioctl is given, or fills, from its request.
local function measure_request(a, at, spec, one, labels)
  local go_on = a:new_label()
  record_buffers.load_argument(a, 1, one.length)
  a:extend(1, 32, false)
  a:alu_r('mov', 2, 1)
  a:alu('rsh', 2, REQUEST.size)
  a:alu('and', 2, REQUEST.size_bits)
  local known = a:new_label()
  for _, request in ipairs(one.buffer.less) do
    local other = a:new_label()
    a:value(3, request[1])
    a:jump_r('!=', 1, 3, other)
    a:alu('mov', 2, request[2])
    a:go(known)
    a:label(other)
  end
  a:label(known)
  a:jump('==', 2, 0, labels.unsized)
  a:store(8, FRAME, at.length, 2)
  a:store_value(8, FRAME, at.left, 0x7fffffff)
  a:alu('rsh', 1, REQUEST.direction)
  a:jump('==', 1, 0, labels.unsized)
  a:jump('&', 1, REQUEST.given, go_on)
  if spec.tracepoint == 'sys_enter' then a:go(labels.unwritten) end
  a:load(8, 1, CONTEXT, 8)
  a:jump('s<', 1, 0, labels.done)
  a:label(go_on)
end

--- Generates code that sets the length of a buffer, or of its vector.
local function measure(a, at, one, bad, done)
  if one.buffer.kind == 'message' then
    a:load(8, 3, FRAME, at.base)
    a:alu('add', 3, MESSAGE.segments)
    read_word(a, at.length, bad)
    a:load(8, 3, FRAME, at.base)
    a:alu('add', 3, MESSAGE.vector)
    read_word(a, at.base, bad)
    return
  end
  local rule = one.buffer
  if rule.by_pointer then
    record_buffers.load_argument(a, 3, one.length)
    record_buffers.read_int(a, at.length, bad)
  elseif rule.size_at then
    local sized = a:new_label()
    a:load(8, 3, FRAME, at.base)
    a:alu('add', 3, rule.size_at)
    record_buffers.read_int(a, at.length, bad)
    a:jump('!=', 1, 0, sized)
    a:alu('mov', 1, VER0)
    a:label(sized)
  elseif rule.bytes then
    a:alu('mov', 1, rule.bytes)
  else
    record_buffers.load_argument(a, 1, one.length)
    if one.is_int then a:extend(1, 32, true) end
  end
  a:jump(rule.head and 's<' or 's<=', 1, 0, done)
  if rule.is_bits then
    a:alu('add', 1, 63)
    a:alu('rsh', 1, 6)
  end
  if rule.unit or rule.is_bits then a:alu('mul', 1, rule.unit or 8) end
  if rule.head then a:alu('add', 1, rule.head) end
  a:store(8, FRAME, at.length, 1)
  if not one.buffer.by_pointer then return end
  local fits = a:new_label()
  a:load(8, 2, FRAME, at.left)
  a:jump_r('<=', 1, 2, fits)
  a:store_value(8, FRAME, at.is_cut, 1)
  a:label(fits)
end

--- Generates code that appends the bytes of a buffer, or goes to a label.
local function append_measured(a, at, spec, one, labels)
  local rule, bad, done = one.buffer, labels.bad, labels.done
  if rule.by_request then
    measure_request(a, at, spec, one, labels)
  else
    limit(a, at, spec, one, bad, done)
    measure(a, at, one, bad, done)
  end
  if rule.kind == 'messages' then return append_messages(a, at, bad, done, rule.out) end
  if rule.kind then return append_vector(a, at, bad, done) end
  append_bytes(a, at, bad)
end

--- Generates code that appends a buffer, without what lies behind it.
---@param slot integer place on the stack: its address
---@param spec UserStringsSpec
---@param one UserString
function record_buffers.append(a, slot, spec, one)
  local append_text = record_buffers.append_text
  if one.buffer.out and spec.tracepoint == 'sys_enter' then return append_text(a, '<unwritten>', true) end
  local ended, labels = a:new_label(), {}
  for _, name in ipairs { 'done', 'bad', 'unwritten', 'unsized', 'null' } do labels[name] = a:new_label() end
  local at = { base = slot, length = a:take(8), left = a:take(8), room = a:take(8), is_cut = a:take(8) }
  a:store_value(8, FRAME, at.is_cut, 0)
  a:store_value(8, FRAME, at.room, record_buffers.MAX)
  a:load(8, 1, FRAME, slot)
  a:jump('==', 1, 0, labels.null)
  if one.flags then
    record_buffers.load_argument(a, 1, one.flags)
    a:jump('&', 1, MSG_TRUNC, labels.unwritten)
  end
  append_measured(a, at, spec, one, labels)
  a:label(labels.done)
  a:load(8, 1, FRAME, at.is_cut)
  a:jump('==', 1, 0, ended)
  append_text(a, '...', true)
  for _, one_mark in ipairs { { 'bad', '<unreadable>' }, { 'unwritten' }, { 'unsized' }, { 'null' } } do
    a:go(ended)
    a:label(labels[one_mark[1]])
    append_text(a, one_mark[2] or ('<%s>'):format(one_mark[1]), true)
  end
  a:label(ended)
  for _, name in ipairs { 'length', 'left', 'room', 'is_cut' } do a:give(at[name], 8) end
end

return record_buffers
