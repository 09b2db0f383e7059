-- SPDX-License-Identifier: GPL-2.0-only
--- The frame of a walk: what is kept of it in memory, and how it begins. That is the memory of a map, because the
--- verifier tracks the values on a program's own stack: it would follow the walk anew after each outcome of a
--- comparison. Its address is in r9.
local asm = require 'bpf.gen.asm'
local types = require 'bpf.gen.kernel_types'

local FRAME, STATE = asm.FRAME, 9
local REGISTERS = { bp = 32, call = 120, ip = 128, cs = 136, sp = 152 } -- offsets in struct pt_regs
local USER_CODE = 0x33 -- segment of 64-bit code
local SIGNAL_AT = { bp = 120, sp = 160, ip = 168, size = 56 } -- of the stack pointer; size: from bp to ip
local AT = { words = 0 }
for i, name in ipairs { 'ip', 'sp', 'bp', 'first', 'count', 'start', 'end_', 'bias', 'row', 'rows', 'address', 'back',
  'rule', 'tag', 'mm', 'top', 'frames', 'noted', 'place', 'first_ip', 'first_bp', 'room' } do
  AT[name] = SIGNAL_AT.size + 8 * (i - 1)
end
local COPY, COPIED = AT.room + 8, 512 -- of the program's stack, from 16 bytes before its stack pointer on
-- The words that a walk has read, if they are few: each with its place in the copy, or beyond it.
local WORDS = { at = COPY + COPIED, place = 0, word = 8, size = 16, most = 32 }

local frame = { STATE = STATE, AT = AT, SIGNAL_AT = SIGNAL_AT, COPY = COPY, COPIED = COPIED, WORDS = WORDS,
  SIZE = WORDS.at + WORDS.size * WORDS.most, MULTIPLIER = 0x9e3779b97f4a7c15ULL }

--- Generates code that reads bytes of the program's stack at r3. Jumps if they cannot be read.
---@param a Asm
---@param to integer offset from r9
---@param size integer
---@param failed string label
function frame.read(a, to, size, failed)
  a:address(1, STATE, to)
  a:alu('mov', 2, size)
  a:call 'probe_read_user'
  a:jump('!=', 0, 0, failed)
end

--- Generates code that takes over the program's registers. Jumps if there are none, or if they are those of code of 32
--- bits.
---@param a Asm
---@param mm integer place on the stack that becomes the address space
---@param none string label
function frame.load_registers(a, mm, none)
  a:call 'get_current_task_btf'
  a:load(8, 1, 0, (types.member('task_struct', 'mm')))
  a:store(8, FRAME, mm, 1)
  a:store(8, STATE, AT.mm, 1)
  a:jump('==', 1, 0, none)
  a:alu_r('mov', 1, 0)
  a:call 'task_pt_regs'
  for _, name in ipairs { 'ip', 'sp', 'bp' } do
    a:load(8, 1, 0, REGISTERS[name])
    a:store(8, STATE, AT[name], 1)
    if name ~= 'sp' then a:store(8, STATE, AT['first_' .. name], 1) end
  end
  a:load(8, 1, 0, REGISTERS.call) -- negative: the program was interrupted, and has not called the kernel
  a:alu('rsh', 1, 63)
  a:alu('xor', 1, 1)
  a:store(8, STATE, AT.back, 1)
  a:load(8, 1, 0, REGISTERS.cs)
  a:alu('and', 1, 0xffff)
  a:jump('!=', 1, USER_CODE, none)
end

--- Generates code that copies the end of the program's stack, so that most frames take no call.
---@param a Asm
function frame.copy_stack(a)
  local failed, done = a:new_label(), a:new_label()
  a:store_value(8, STATE, AT.noted, WORDS.most)
  a:load(8, 3, STATE, AT.sp)
  a:alu('sub', 3, 16)
  a:store(8, STATE, AT.top, 3)
  frame.read(a, COPY, COPIED, failed)
  a:store_value(8, STATE, AT.noted, 0)
  a:go(done)
  a:label(failed)
  a:store_value(8, STATE, AT.top, -1)
  a:label(done)
end

return frame
