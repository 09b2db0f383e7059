-- SPDX-License-Identifier: GPL-2.0-only
--- Assembler of BPF instructions. Labels are resolved, and the limits of the instruction set checked, when the program
--- is finished. Registers are numbers: r0 is the result of helpers and programs, r1 to r5 are their arguments, which
--- calls destroy, r6 to r9 survive calls, and r10 is the end of the stack.
---
--- Instructions are limited to those of Linux 5.10: no sign-extending loads, no signed division, no long jumps.
local bit = require 'bit'
local ffi = require 'ffi'

ffi.cdef 'struct bpf_insn { uint8_t code, registers; int16_t off; int32_t imm; };'

local asm = {}

local CLASS = { LD = 0, LDX = 1, ST = 2, STX = 3, ALU = 4, JMP = 5, JMP32 = 6, ALU64 = 7 }
local REGISTER = 0x08 -- the second operand is a register
local MEM, ATOMIC = 0x60, 0xc0
local WIDTH = { [1] = 0x10, [2] = 0x08, [4] = 0x00, [8] = 0x18 }
local ALU = {
  add = 0x00, sub = 0x10, mul = 0x20, div = 0x30, ['or'] = 0x40, ['and'] = 0x50, lsh = 0x60, rsh = 0x70, neg = 0x80,
  mod = 0x90, xor = 0xa0, mov = 0xb0, arsh = 0xc0, swap = 0xd0,
}
local JUMP = {
  go = 0x00, ['=='] = 0x10, ['>'] = 0x20, ['>='] = 0x30, ['&'] = 0x40, ['!='] = 0x50, ['s>'] = 0x60, ['s>='] = 0x70,
  call = 0x80, exit = 0x90, ['<'] = 0xa0, ['<='] = 0xb0, ['s<'] = 0xc0, ['s<='] = 0xd0,
}

--- Helpers of the kernel (enum bpf_func_id).
asm.HELPERS = {
  map_lookup_elem = 1, map_update_elem = 2, map_delete_elem = 3, ktime_get_ns = 5, get_smp_processor_id = 8,
  tail_call = 12, get_current_pid_tgid = 14, get_current_comm = 16, perf_event_output = 25, get_current_task = 35,
  get_numa_node_id = 42, get_stack = 67, get_current_cgroup_id = 80, probe_read_user = 112, probe_read_kernel = 113,
  probe_read_user_str = 114, probe_read_kernel_str = 115, get_current_ancestor_cgroup_id = 123, ringbuf_output = 130,
  this_cpu_ptr = 154, get_current_task_btf = 158, get_func_ip = 173, task_pt_regs = 175,
}

asm.STACK = 512 -- bytes
asm.CONTEXT = 6 -- register of the program's context, by convention
asm.FRAME = 10

local MAX_JUMP = 32767

--- Why a program cannot be made. It is thrown and caught by asm.attempt().
---@class Refusal
---@field refused string

--- Gives up: what was asked for cannot be a BPF program.
---@param format string
function asm.refuse(format, ...)
  error({ refused = format:format(...) }, 0)
end

--- Calls body. Returns its result, or nil and the reason if it refuses.
---@param body fun(): any
---@return any result, string? reason
function asm.attempt(body)
  local ok, result = pcall(body)
  if ok then return result end
  if type(result) ~= 'table' or not result.refused then error(result, 0) end
  return nil, result.refused
end

---@class Asm
---@field n integer number of instructions
---@field list table[] code, destination, source, offset or label, immediate
---@field labels table<string, integer> the instruction before which the label stands, from 0
---@field depth integer bytes of the stack in use
---@field free table<integer, integer[]> offsets of released places on the stack, by size
---@field made integer number of labels from new_label(), and of parts
---@field part? string prefix of the labels of the part that is being generated
---@field used_maps table[] maps to keep as long as the program is loaded
local Asm = {}
Asm.__index = Asm

---@return Asm
function asm.new()
  return setmetatable({ n = 0, list = {}, labels = {}, depth = 0, free = {}, made = 0, used_maps = {} }, Asm)
end

local function check_register(number)
  assert(number >= 0 and number <= 10 and number % 1 == 0, 'no such register')
end

local function check_immediate(value)
  assert(asm.fits(value), 'the immediate value has more than 32 bits')
end

--- Returns whether a number can be the operand of an instruction, which extends its sign.
---@param value number
---@return boolean
function asm.fits(value) return value >= -2 ^ 31 and value < 2 ^ 31 end

function Asm:emit(code, to, from, off, imm)
  check_register(to)
  check_register(from)
  check_immediate(imm)
  if type(off) == 'number' then assert(off >= -32768 and off <= 32767, 'the offset has more than 16 bits') end
  if type(off) == 'string' then off = self:scoped(off) end
  self.n = self.n + 1
  self.list[self.n] = { code, to, from, off, imm }
end

-- Loads and stores --------------------------------------------------------------------------------

--- to = *(from + off), extended with zeros.
---@param size integer 1, 2, 4 or 8 bytes
function Asm:load(size, to, from, off) self:emit(CLASS.LDX + WIDTH[size] + MEM, to, from, off, 0) end

--- *(to + off) = from
function Asm:store(size, to, off, from) self:emit(CLASS.STX + WIDTH[size] + MEM, to, from, off, 0) end

--- *(to + off) = value
function Asm:store_value(size, to, off, value) self:emit(CLASS.ST + WIDTH[size] + MEM, to, 0, off, value) end

--- *(to + off) += from, atomically.
---@param size integer 4 or 8
function Asm:atomic_add(size, to, off, from) self:emit(CLASS.STX + WIDTH[size] + ATOMIC, to, from, off, 0) end

local FETCH = 0x01
local EXCHANGE, COMPARE = 0xe0 + FETCH, 0xf0 + FETCH

--- Adds from to *(to + off) and sets from to the former value, in one step. Needs Linux 5.12.
function Asm:fetch_add(to, off, from) self:emit(CLASS.STX + WIDTH[8] + ATOMIC, to, from, off, FETCH) end

--- Swaps *(to + off), of 8 bytes, and a register atomically. Since Linux 5.12.
function Asm:exchange(to, off, with) self:emit(CLASS.STX + WIDTH[8] + ATOMIC, to, with, off, EXCHANGE) end

--- If *(to + off), of 8 bytes, is r0, sets it to a register, atomically. r0 becomes what it was. Since Linux 5.12.
function Asm:compare_exchange(to, off, with) self:emit(CLASS.STX + WIDTH[8] + ATOMIC, to, with, off, COMPARE) end

local function wide(self, to, kind, low, high)
  self:emit(CLASS.LD + WIDTH[8], to, kind, 0, low)
  self:emit(0, 0, 0, 0, high)
end

--- to = value, of 64 bits.
---@param value number|ffi.cdata*
function Asm:value(to, value)
  local short = tonumber(value)
  if asm.fits(short) then return self:alu('mov', to, short) end
  local all = type(value) == 'number' and (value < 0 and ffi.cast('uint64_t', ffi.cast('int64_t', value))
    or ffi.cast('uint64_t', value)) or ffi.cast('uint64_t', value)
  wide(self, to, 0, bit.tobit(tonumber(all % 2 ^ 32)), bit.tobit(tonumber(bit.rshift(all, 32))))
end

local MAP_FD, MAP_VALUE, TYPE_ID = 1, 2, 3

--- to = the map, as an argument of helpers.
---@param map { fd: integer }
function Asm:map(to, map)
  self.used_maps[#self.used_maps + 1] = map
  wide(self, to, MAP_FD, map.fd, 0)
end

--- to = the address of the first value of an array map, plus off.
---@param map { fd: integer }
function Asm:map_value(to, map, off)
  self.used_maps[#self.used_maps + 1] = map
  wide(self, to, MAP_VALUE, map.fd, off)
end

--- to = the address of a kernel variable, by its BTF id; for a per-CPU variable, its place for the helpers.
---@param id integer
function Asm:variable(to, id) wide(self, to, TYPE_ID, id, 0) end

-- Arithmetic --------------------------------------------------------------------------------------

local function check_operand(op, value, bits)
  if op == 'div' or op == 'mod' then assert(value ~= 0, 'division by zero') end
  if op == 'lsh' or op == 'rsh' or op == 'arsh' then assert(value >= 0 and value < bits, 'invalid shift count') end
end

--- to = to OP value, with 64 bits; the value is sign-extended. Division and modulo are unsigned.
---@param op string key of ALU
function Asm:alu(op, to, value)
  check_operand(op, value, 64)
  self:emit(CLASS.ALU64 + ALU[op], to, 0, 0, value)
end

--- to = to OP from, with 64 bits.
function Asm:alu_r(op, to, from) self:emit(CLASS.ALU64 + ALU[op] + REGISTER, to, from, 0, 0) end

--- to = from + offset
function Asm:address(to, from, offset)
  self:alu_r('mov', to, from)
  self:alu('add', to, offset)
end

--- to = to OP value, with 32 bits. The upper 32 bits become 0.
function Asm:alu32(op, to, value)
  check_operand(op, value, 32)
  self:emit(CLASS.ALU + ALU[op], to, 0, 0, value)
end

--- to = to OP from, with 32 bits. The upper 32 bits become 0.
function Asm:alu32_r(op, to, from) self:emit(CLASS.ALU + ALU[op] + REGISTER, to, from, 0, 0) end

--- Reverses the bytes of the low 16, 32 or 64 bits if the machine is little endian, and clears the other bits.
function Asm:to_big_endian(to, bits) self:emit(CLASS.ALU + ALU.swap + REGISTER, to, 0, 0, bits) end

--- Extends the low bits of a register to 64 bits.
---@param bits integer 8, 16 or 32
---@param signed boolean
function Asm:extend(to, bits, signed)
  if bits == 32 and not signed then return self:alu32_r('mov', to, to) end
  self:alu('lsh', to, 64 - bits)
  self:alu(signed and 'arsh' or 'rsh', to, 64 - bits)
end

-- Jumps -------------------------------------------------------------------------------------------

--- Returns a label that is not used yet.
---@return string
function Asm:new_label()
  self.made = self.made + 1
  return 'label ' .. self.made
end

--- Places a label before the next instruction.
function Asm:label(name)
  name = self:scoped(name)
  assert(not self.labels[name], 'the label is placed twice')
  self.labels[name] = self.n
end

--- Returns the name of a label in all of the program.
function Asm:scoped(name)
  if not self.part or name:match '^label %d' then return name end
  return self.part .. name
end

--- Generates a part of the program: its labels, but for those of new_label(), and its places on the stack are its own.
--- The label `done` ends it.
---@param body fun()
function Asm:within(body)
  local part, depth, free = self.part, self.depth, self.free
  self.made = self.made + 1
  self.part, self.free = ('part %d '):format(self.made), {}
  body()
  self:label 'done'
  self.part, self.depth, self.free = part, depth, free
end

function Asm:go(label) self:emit(CLASS.JMP + JUMP.go, 0, 0, label, 0) end

--- Jumps if `a OP value`: a comparison of 64 bits; the value is sign-extended. `s<` and similar compare signed numbers,
--- `&` tests bits.
---@param op string key of JUMP
function Asm:jump(op, a, value, label) self:emit(CLASS.JMP + JUMP[op], a, 0, label, value) end
function Asm:jump_r(op, a, b, label) self:emit(CLASS.JMP + JUMP[op] + REGISTER, a, b, label, 0) end

--- The same for the low 32 bits.
function Asm:jump32(op, a, value, label) self:emit(CLASS.JMP32 + JUMP[op], a, 0, label, value) end
function Asm:jump32_r(op, a, b, label) self:emit(CLASS.JMP32 + JUMP[op] + REGISTER, a, b, label, 0) end

--- Calls a helper.
---@param helper string key of asm.HELPERS
function Asm:call(helper)
  self:emit(CLASS.JMP + JUMP.call, 0, 0, 0, assert(asm.HELPERS[helper], 'no such helper'))
end

local KERNEL_FUNCTION = 2 -- BPF_PSEUDO_KFUNC_CALL

--- Calls a function of the kernel that is meant for BPF programs.
---@param id integer of the function's type
function Asm:call_kernel(id) self:emit(CLASS.JMP + JUMP.call, 0, KERNEL_FUNCTION, 0, id) end

--- Ends the program. r0 is its result.
function Asm:exit() self:emit(CLASS.JMP + JUMP.exit, 0, 0, 0, 0) end

--- Ends the program at the label 'done', with the result 0.
function Asm:done()
  self:label 'done'
  self:alu('mov', 0, 0)
  self:exit()
end

-- The stack ---------------------------------------------------------------------------------------

local function rounded(size) return bit.band(size + 7, -8) end

--- Takes a place on the stack. Its contents are undefined.
---@param size integer bytes
---@return integer offset from FRAME, a multiple of 8
function Asm:take(size)
  size = rounded(size)
  local free = self.free[size]
  if free and #free > 0 then return table.remove(free) end
  self.depth = self.depth + size
  if self.depth > asm.STACK then asm.refuse('it needs more than the %d bytes of a BPF stack', asm.STACK) end
  return -self.depth
end

--- Gives back a place on the stack.
---@param offset integer
---@param size integer as taken
function Asm:give(offset, size)
  size = rounded(size)
  self.free[size] = self.free[size] or {}
  table.insert(self.free[size], offset)
end

-- The program -------------------------------------------------------------------------------------

local GO, EXIT = CLASS.JMP + JUMP.go, CLASS.JMP + JUMP.exit
local WIDE = CLASS.LD + WIDTH[8]

function Asm:target(label) return assert(self.labels[label], 'a jump to a label that is not placed') + 1 end

--- Returns which instructions can be reached, their numbers from 0, and their count. The kernel rejects programs with
--- others.
local function reachable(self)
  local reached, left = {}, { 1 }
  while #left > 0 do
    local i = table.remove(left)
    while not reached[i] do
      reached[i] = true
      local one = assert(self.list[i], 'the program does not end')
      if one[1] == EXIT then break end
      if type(one[4]) == 'string' then left[#left + 1] = self:target(one[4]) end
      if one[1] == GO then break end
      if one[1] == WIDE then reached[i + 1] = true end
      i = i + (one[1] == WIDE and 2 or 1)
    end
  end
  local numbers, n = {}, 0
  for i = 1, self.n do
    numbers[i] = n
    if reached[i] then n = n + 1 end
  end
  return reached, numbers, n
end

--- Resolves the labels, and leaves out what cannot be reached.
---@return ffi.cdata* instructions struct bpf_insn[n]
---@return integer n
function Asm:finish()
  local reached, numbers, n = reachable(self)
  local out = ffi.new('struct bpf_insn[?]', n)
  for i, one in ipairs(self.list) do
    if reached[i] then
      local off = one[4]
      if type(off) == 'string' then
        off = numbers[self:target(off)] - numbers[i] - 1
        if math.abs(off) > MAX_JUMP then asm.refuse('it needs a jump over more than %d instructions', MAX_JUMP) end
      end
      local to = out[numbers[i]]
      to.code, to.registers, to.off, to.imm = one[1], bit.bor(one[2], bit.lshift(one[3], 4)), off, one[5]
    end
  end
  return out, n
end

return asm
