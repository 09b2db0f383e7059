-- SPDX-License-Identifier: GPL-2.0-only
--- Decoder of x86-64 store instructions, for watchpoints. A watchpoint traps after the instruction, so its code is
--- before the instruction pointer and its operands are still in registers. x86 code cannot be decoded backwards
--- unambiguously: a candidate must end at the instruction pointer and write to the watched address. Of several the
--- longest is chosen, because shorter ones miss prefixes.
local bit = require 'bit'

local band, bor, bxor, bnot = bit.band, bit.bor, bit.bxor, bit.bnot
local lshift, rshift, arshift = bit.lshift, bit.rshift, bit.arshift
local x86store = {}

local LONGEST = 15
-- Repeated stos and movs. After each iteration but the last the instruction pointer is still at the instruction.
local REPEATED = '^[\242\243][\64-\79]?[\164\165\170\171]'
local MASK = { [1] = 0xffULL, [2] = 0xffffULL, [4] = 0xffffffffULL, [8] = 0xffffffffffffffffULL }
local NAMES = { [0] = 'RAX', 'RCX', 'RDX', 'RBX', 'RSP', 'RBP', 'RSI', 'RDI' }
for i = 8, 15 do NAMES[i] = 'R' .. i end
local BYTES = { [0] = 'al', 'cl', 'dl', 'bl', 'ah', 'ch', 'dh', 'bh' }
local REX_BYTES = { [4] = 'spl', [5] = 'bpl', [6] = 'sil', [7] = 'dil' }
local SUFFIX = { [1] = 'b', [2] = 'w', [4] = 'l', [8] = 'q' }
local CONDITIONS = { [0] = 'o', 'no', 'b', 'ae', 'e', 'ne', 'be', 'a', 's', 'ns', 'p', 'np', 'l', 'ge', 'le', 'g' }
-- Stores of vector registers by the second byte of the opcode. Samples do not contain vector registers.
local VECTORS = {
  [0x11] = 'movups', [0x13] = 'movlps', [0x17] = 'movhps', [0x29] = 'movaps', [0x2b] = 'movntps', [0x7e] = 'movq',
  [0x7f] = 'movdqu', [0xd6] = 'movq', [0xe7] = 'movntdq',
}
local VECTOR_SIZE = { movlps = 8, movhps = 8, movq = 8 }
-- The results of read-modify-write instructions. Except for shr, low bits depend on low bits only.
local OPERATIONS = {
  add = function(old, by) return old + by end,
  ['or'] = function(old, by) return bor(old, by) end,
  ['and'] = function(old, by) return band(old, by) end,
  sub = function(old, by) return old - by end,
  xor = function(old, by) return bxor(old, by) end,
  inc = function(old) return old + 1 end,
  dec = function(old) return old - 1 end,
  ['not'] = function(old) return bnot(old) end,
  neg = function(old) return 0ULL - old end,
  shl = function(old, by) return by < 64 and lshift(old, tonumber(by)) or 0ULL end,
  shr = function(old, by) return by < 64 and rshift(old, tonumber(by)) or 0ULL end,
  bts = function(old, by) return bor(old, lshift(1ULL, tonumber(by))) end,
  btr = function(old, by) return band(old, bnot(lshift(1ULL, tonumber(by)))) end,
  btc = function(old, by) return bxor(old, lshift(1ULL, tonumber(by))) end,
}
local ARITHMETIC = { [0] = 'add', 'or', 'adc', 'sbb', 'and', 'sub', 'xor' }
local INCREMENTS, NEGATIONS = { [0] = 'inc', 'dec' }, { [2] = 'not', [3] = 'neg' }
local BITS, BIT_GROUP = { [0xab] = 'bts', [0xb3] = 'btr', [0xbb] = 'btc' }, { [5] = 'bts', [6] = 'btr', [7] = 'btc' }
local STRINGS = { [0xa4] = 'movs', [0xa5] = 'movs', [0xaa] = 'stos', [0xab] = 'stos' }
local GROUPS, IS_SHIFT = {}, {}
for code in ('80 81 83 c0 c1 c6 c7 d0 d1 d2 d3 f6 f7 fe ff'):gmatch '%x+' do GROUPS[tonumber(code, 16)] = true end
local SHIFTS = { [0] = 'rol', 'ror', 'rcl', 'rcr', 'shl', 'shr', 'shl', 'sar' }

for i = 0, 7 do IS_SHIFT[SHIFTS[i]] = true end

--- A decoded instruction.
---@class X86Instruction
---@field at integer position of the next byte to decode
---@field operand integer operand size in bytes
---@field rex integer REX prefix; 0: none
---@field code string bytes of the instruction
---@field name? string text of the instruction
---@field size? integer number of bytes written
---@field address? integer64 address written to
---@field value? integer64 value written, if it does not depend on the old value
---@field by? integer64 operand of a read-modify-write instruction
---@field segment? integer alignment of the unknown segment base, if the address is relative to one
local Instruction = {}
Instruction.__index = Instruction

function Instruction:byte()
  local value = self.code:byte(self.at)
  self.at = self.at + 1
  return value or error(false, 0) -- the code ends within the instruction: not this one
end

--- Reads a sign-extended constant.
function Instruction:constant(size)
  local value, sign = 0ULL, lshift(1ULL, 8 * size - 1)
  for i = 0, size - 1 do value = bor(value, lshift(self:byte() + 0ULL, 8 * i)) end
  return bxor(value, sign) - sign
end

--- Returns the name and the value of a register.
function Instruction:register(number, size)
  local high = size == 1 and self.rex == 0 and number >= 4 and number < 8
  local value = self.registers[NAMES[high and number - 4 or number]]
  local name
  if size == 1 then
    name = number >= 8 and 'r' .. number .. 'b' or self.rex ~= 0 and REX_BYTES[number] or BYTES[number]
  elseif number >= 8 then
    name = 'r' .. number .. (size == 8 and '' or size == 4 and 'd' or 'w')
  else
    name = (size == 8 and 'r' or size == 4 and 'e' or '') .. NAMES[number]:sub(2):lower()
  end
  return '%' .. name, band(rshift(value, high and 8 or 0), MASK[size])
end

local function signed(value)
  local below = value >= 0x8000000000000000ULL
  return ('%s0x%x'):format(below and '-' or '', below and 0ULL - value or value)
end

--- Decodes the memory operand. Returns the reg field of the ModRM byte: a register or a part of the opcode.
function Instruction:memory()
  local modrm = self:byte()
  local mode, rm = rshift(modrm, 6), band(modrm, 7)
  if mode == 3 then error(false, 0) end
  local address, text, displacement = 0ULL, '', nil
  if rm == 4 then
    local sib = self:byte()
    local index, base = band(rshift(sib, 3), 7) + (band(self.rex, 2) ~= 0 and 8 or 0), band(sib, 7)
    if base ~= 5 or mode ~= 0 then
      text, address = self:register(base + (band(self.rex, 1) ~= 0 and 8 or 0), 8)
    end
    if index ~= 4 then
      local name, value = self:register(index, 8)
      local scale = lshift(1, rshift(sib, 6))
      text, address = ('%s,%s,%d'):format(text, name, scale), address + value * scale
    end
    displacement = base == 5 and mode == 0 and self:constant(4) or nil
  elseif rm == 5 and mode == 0 then
    displacement, text, address = self:constant(4), '%rip', self.registers.RIP
  else
    text, address = self:register(rm + (band(self.rex, 1) ~= 0 and 8 or 0), 8)
  end
  displacement = displacement or mode > 0 and self:constant(mode == 1 and 1 or 4)
  self.address = address + (displacement or 0ULL)
  self.where = (self.prefix or '') .. (displacement and signed(displacement) or '')
    .. (text ~= '' and '(' .. text .. ')' or '')
  return band(rshift(modrm, 3), 7) + (band(self.rex, 4) ~= 0 and 8 or 0)
end

--- Sets the text, size and value of a store. A nil value is unknown.
function Instruction:writes(name, size, operand, value)
  self.size, self.value = size, value
  self.name = table.concat({ operand or self.where, operand and self.where }, ',')
  self.name = name .. ' ' .. self.name
  return true
end

--- Sets the text and operation of a read-modify-write instruction.
function Instruction:changes(name, size, operand, by)
  self.operation, self.by = OPERATIONS[name], by
  local is_shift = IS_SHIFT[name]
  self.takes_lock = not is_shift
  local is_plain = operand and not is_shift and not operand:match '^%$'
  return self:writes(is_plain and name or name .. SUFFIX[size], size, operand)
end

--- Decodes a memory operand and returns the register operand.
function Instruction:source(size) return self:register(self:memory(), size) end

--- Reads an immediate of some bytes, for an operand of `size` bytes. Returns its text and value.
function Instruction:immediate(bytes, size)
  local value = self:constant(bytes)
  return ('$0x%x'):format(band(value, MASK[size])), value
end

--- Decodes opcodes that the reg field of the ModRM byte extends.
function Instruction:group(code, size)
  local number = band(self:memory(), 7)
  if code == 0xc6 or code == 0xc7 then
    return number == 0 and self:writes('mov' .. SUFFIX[size], size, self:immediate(math.min(size, 4), size))
  elseif code < 0x84 then
    local name = ARITHMETIC[number]
    return name and self:changes(name, size, self:immediate(code == 0x81 and math.min(size, 4) or 1, size))
  elseif code >= 0xf6 then
    local name = (code >= 0xfe and INCREMENTS or NEGATIONS)[number]
    return name and self:changes(name, size, nil, 0ULL)
  end
  local operand, by = nil, 1ULL
  if code < 0xd0 then operand, by = self:immediate(1, 1) end
  if code >= 0xd2 then operand, by = self:register(1, 1) end
  return self:changes(SHIFTS[number], size, operand, band(by, size == 8 and 63ULL or 31ULL))
end

function Instruction:push(operand, value)
  self.address = self.registers.RSP
  return self:writes('push', 8, operand, value)
end

--- Decodes one-byte opcodes. Returns nil if the instruction does not write memory or is unknown.
function Instruction:one(code)
  local size = band(code, 1) == 0 and 1 or self.operand
  if code < 0x38 and band(code, 7) < 2 then
    return self:changes(ARITHMETIC[rshift(code, 3)], size, self:source(size))
  elseif code == 0x88 or code == 0x89 then
    return self:writes('mov', size, self:source(size))
  elseif code == 0x86 or code == 0x87 then
    self.takes_lock = true
    return self:writes('xchg', size, (self:source(size)))
  elseif code == 0xa2 or code == 0xa3 then
    self.address = self:constant(8)
    self.where = signed(self.address)
    return self:writes('movabs', size, self:register(0, size))
  elseif GROUPS[code] then
    return self:group(code, size)
  elseif band(code, 0xf8) == 0x50 then
    return self:push(self:register(band(code, 7) + (band(self.rex, 1) ~= 0 and 8 or 0), 8))
  elseif code == 0x68 or code == 0x6a then
    return self:push(self:immediate(code == 0x68 and 4 or 1, 8))
  elseif STRINGS[code] then
    return self:string(code, size)
  end
end

--- Decodes stos and movs. RDI has already been advanced.
function Instruction:string(code, size)
  self.address, self.where = self.registers.RDI - size, '%es:(%rdi)'
  self.takes_repeat = true
  local name = (self.is_repeated and 'rep ' or '') .. STRINGS[code]
  if STRINGS[code] == 'movs' then return self:writes(name .. SUFFIX[size], size, '%ds:(%rsi)') end
  return self:writes(name, size, self:register(0, size))
end

--- Returns whether a condition was true. Instructions with conditions do not change the flags.
local function holds(condition, flags)
  local function flag(number) return band(flags, lshift(1ULL, number)) ~= 0 end
  local less = flag(7) ~= flag(11)
  local is = ({ [0] = flag(11), flag(0), flag(6), flag(0) or flag(6), flag(7), flag(2), less, less or flag(6) })
  return is[rshift(condition, 1)] ~= (band(condition, 1) == 1)
end

--- Decodes two-byte opcodes, which start with 0f.
function Instruction:two(code)
  local size = band(code, 1) == 0 and 1 or self.operand
  if VECTORS[code] then
    local register = '%xmm' .. self:memory()
    self.takes_repeat = true
    return self:writes(VECTORS[code], VECTOR_SIZE[VECTORS[code]] or 16, register)
  elseif band(code, 0xf0) == 0x90 then
    self:memory()
    return self:writes('set' .. CONDITIONS[band(code, 15)], 1, nil,
      holds(band(code, 15), self.registers.RFLAGS) and 1ULL or 0ULL)
  elseif code == 0xc3 and self.operand > 2 then
    return self:writes('movnti', self.operand, self:source(self.operand))
  elseif code == 0xc0 or code == 0xc1 then
    self.takes_lock = true
    return self:writes('xadd', size, (self:source(size)))
  elseif code == 0xb0 or code == 0xb1 then
    local operand, value = self:source(size)
    local _, old = self:register(0, size) -- after a failure it contains the value in memory
    self.takes_lock = true
    return self:writes('cmpxchg', size, operand, holds(4, self.registers.RFLAGS) and value or old)
  elseif code == 0xc7 then
    local name = self.operand == 8 and 'cmpxchg16b' or 'cmpxchg8b'
    self.takes_lock = true
    return band(self:memory(), 7) == 1 and self:writes(name, 2 * self.operand)
  elseif BITS[code] then
    return self:bit(BITS[code], self:source(self.operand))
  elseif code == 0xba then
    local name = BIT_GROUP[band(self:memory(), 7)]
    if not name then return end
    local operand, number = self:immediate(1, 1)
    return self:changes(name, self.operand, operand, band(number, 8ULL * self.operand - 1))
  end
end

--- Decodes bit operations whose bit number is in a register, which may be outside of the operand.
function Instruction:bit(name, operand, number)
  local size, sign = self.operand, lshift(1ULL, 8 * self.operand - 1)
  number = bxor(number, sign) - sign
  self.address = self.address + arshift(number, size == 8 and 6 or size == 4 and 5 or 4) * size
  return self:changes(name, size, operand, band(number, 8ULL * size - 1))
end

function Instruction:read()
  local code = self:byte()
  local lock, is_16
  while code == 0xf0 or code == 0x66 or code == 0xf2 or code == 0xf3 or code == 0x64 or code == 0x65 do
    lock = lock or code == 0xf0
    is_16 = is_16 or code == 0x66
    self.is_repeated = self.is_repeated or code >= 0xf2
    if code == 0x64 then self.prefix, self.segment = '%fs:', 64 end
    if code == 0x65 then self.prefix, self.segment = '%gs:', 4096 end
    code = self:byte()
  end
  self.operand = is_16 and 2 or 4
  if band(code, 0xf0) == 0x40 then
    self.rex = code
    if band(code, 8) ~= 0 then self.operand = 8 end
    code = self:byte()
  end
  local found
  if code == 0x0f then found = self:two(self:byte()) else found = self:one(code) end
  -- A prefix that does not apply to the instruction is the end of the instruction before.
  if not found or self.at <= #self.code or lock and not self.takes_lock or self.is_repeated and not self.takes_repeat
    or (is_16 or self.operand == 8) and self.size == 1 or is_16 and self.operand == 8 then
    return
  end
  self.name = (lock and 'lock ' or '') .. self.name
  return self
end

--- Adds the segment base to the address. Only the alignment of the base is known, so it is chosen such that the address
--- is next to the watched one.
local function add_segment_base(self, watched)
  local distance = band(self.address - watched, self.segment - 1ULL)
  if distance >= self.segment / 2 then distance = distance - self.segment end
  self.address = watched + distance
end

--- Decodes the instruction that has written to a watched address.
---@param code string up to 15 bytes before the instruction pointer
---@param ahead string some bytes from the instruction pointer on
---@param registers table<string, integer64> RAX, RIP and so on, after the instruction
---@param watched integer64 watched address
---@param length integer number of watched bytes
---@return X86Instruction? instruction nil: none found
function x86store.decode(code, ahead, registers, watched, length)
  local function try(bytes)
    local instruction = setmetatable({ code = bytes, at = 1, rex = 0, registers = registers }, Instruction)
    local ok, found = pcall(instruction.read, instruction)
    if not ok and found then error(found, 0) end
    if not ok or not found then return end
    if found.segment then add_segment_base(found, watched) end
    -- The written and the watched bytes overlap if one range starts within the other.
    return (found.address - watched < length or watched - found.address < found.size) and found or nil
  end
  local repeated = ahead:match(REPEATED)
  local again = repeated and try(repeated)
  if again then return again end
  for n = math.min(LONGEST, #code), 1, -1 do
    local found = try(code:sub(-n))
    if found then return found end
  end
end

--- Returns the value of the watched bytes after an instruction.
---@param found X86Instruction
---@param watched integer64 watched address
---@param length integer number of watched bytes
---@param old? integer64 value before the instruction; nil: unknown
---@return integer64? value nil: unknown
function x86store.value(found, watched, length, old)
  local value, size = found.value, found.size
  local offset = found.address - watched -- unsigned: huge if the write starts before the watched bytes
  local is_inside = offset < length
  local low = is_inside and 8 * tonumber(offset) or 0
  if found.operation and old and is_inside and size <= 8
    and (offset + size <= length or offset == 0 and found.operation ~= OPERATIONS.shr) then
    value = found.operation(band(rshift(old, low), MASK[size]), found.by)
  end
  if not value or size > 8 then return nil end
  if not is_inside then
    local before = tonumber(watched - found.address)
    local left = size - before
    if left >= length then return band(rshift(value, 8 * before), MASK[length]) end
    value, size = rshift(band(value, MASK[size]), 8 * before), left
  elseif offset == 0 and size >= length then
    return band(value, MASK[length])
  end
  if not old then return nil end
  local part = 8 * size + low >= 64 and MASK[8] or lshift(1ULL, 8 * size + low) - 1
  part = bxor(part, lshift(1ULL, low) - 1)
  return band(bor(band(old, bnot(part)), band(lshift(value, low), part)), MASK[length])
end

return x86store
