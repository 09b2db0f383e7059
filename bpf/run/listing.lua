-- SPDX-License-Identifier: GPL-2.0-only
--- Listings of generated programs: an instruction a line, in the notation of bpftool.
local asm = require 'bpf.gen.asm'
local bit = require 'bit'

local listing = {}

local LD, LDX, ST, STX, ALU, JMP, JMP32, ALU64 = 0, 1, 2, 3, 4, 5, 6, 7
local SIZES = { [0x00] = 'u32', [0x08] = 'u16', [0x10] = 'u8', [0x18] = 'u64' }
local ATOMIC, REGISTER = 0xc0, 0x08
local SIGNS = { [0x00] = '+', [0x10] = '-', [0x20] = '*', [0x30] = '/', [0x40] = '|', [0x50] = '&', [0x60] = '<<',
  [0x70] = '>>', [0x90] = '%', [0xa0] = '^', [0xb0] = '', [0xc0] = 's>>' }
local NEGATE, SWAP = 0x80, 0xd0
local TESTS = { [0x10] = '==', [0x20] = '>', [0x30] = '>=', [0x40] = '&', [0x50] = '!=', [0x60] = 's>', [0x70] = 's>=',
  [0xa0] = '<', [0xb0] = '<=', [0xc0] = 's<', [0xd0] = 's<=' }
local GO, CALL, EXIT = 0x00, 0x80, 0x90
local KINDS = { 'map %d', 'value of map %d', 'kernel variable %d' } -- of wide constants
local KERNEL_FUNCTION = 2

local helpers = {}
for name, number in pairs(asm.HELPERS) do helpers[number] = name end

local function memory(size, register, off)
  return ('*(%s *)(r%d %s %d)'):format(SIZES[size], register, off < 0 and '-' or '+', math.abs(off))
end

local function arithmetic(op, to, from, imm, is_register, is_wide)
  local name = (is_wide and 'r' or 'w') .. to
  if op == NEGATE then return ('%s = -%s'):format(name, name) end
  if op == SWAP then return ('r%d = be%d r%d'):format(to, imm, to) end
  local operand = is_register and (is_wide and 'r' or 'w') .. from or tostring(imm)
  return ('%s %s= %s'):format(name, SIGNS[op], operand)
end

local function jump(at, op, to, from, off, imm, is_register, is_wide)
  if op == EXIT then return 'exit' end
  if op == CALL then
    return 'call ' .. (from == KERNEL_FUNCTION and 'kernel function ' .. imm or helpers[imm] or tostring(imm))
  end
  if op == GO then return 'goto ' .. at + 1 + off end
  local register = is_wide and 'r' or 'w'
  return ('if %s%d %s %s goto %d'):format(register, to, TESTS[op], is_register and register .. from or tostring(imm),
    at + 1 + off)
end

--- Returns the text of an instruction.
local function instruction(at, one, next_one)
  local code, off, imm = one.code, one.off, one.imm
  local to, from = bit.band(one.registers, 15), bit.rshift(one.registers, 4)
  local class, size, op = bit.band(code, 7), bit.band(code, 0x18), bit.band(code, 0xf0)
  local is_register = bit.band(code, REGISTER) ~= 0
  if class == LD then
    local kind = KINDS[from]
    local value = kind and kind:format(imm) or ('0x%s%08x'):format(next_one.imm ~= 0 and bit.tohex(next_one.imm) or '',
      imm % 2 ^ 32)
    return ('r%d = %s%s'):format(to, value, from == 2 and next_one.imm ~= 0 and ' + ' .. next_one.imm or '')
  elseif class == LDX then
    return ('r%d = %s'):format(to, memory(size, from, off))
  elseif class == ST then
    return ('%s = %d'):format(memory(size, to, off), imm)
  elseif class == STX and bit.band(code, 0xe0) == ATOMIC then
    return ('lock %s %s r%d'):format(memory(size, to, off), imm == 0 and '+=' or ('atomic 0x%x'):format(imm), from)
  elseif class == STX then
    return ('%s = r%d'):format(memory(size, to, off), from)
  elseif class == ALU or class == ALU64 then
    return arithmetic(op, to, from, imm, is_register, class == ALU64)
  end
  assert(class == JMP or class == JMP32)
  return jump(at, op, to, from, off, imm, is_register, class == JMP)
end

--- Returns the lines of a program.
---@param code Asm
---@return string[]
function listing.lines(code)
  local instructions, n = code:finish()
  local lines, at = {}, 0
  while at < n do
    local one = instructions[at]
    local is_wide = bit.band(one.code, 7) == LD
    lines[#lines + 1] = ('%4d: %s'):format(at, instruction(at, one, is_wide and instructions[at + 1] or nil))
    at = at + (is_wide and 2 or 1)
  end
  return lines
end

return listing
