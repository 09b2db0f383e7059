-- SPDX-License-Identifier: GPL-2.0-only
-- Operands of the code generator (codegen.lua), their conversions, and arithmetic that is a single Lua expression. An
-- operand is a table:
--   kind 'num'   an exact Lua number between lo and hi. An operand with a 32-bit type may exceed the range of the type:
--                it is then only correct modulo 2^32, until norm() wraps it.
--   kind 'wide'  an int64_t or uint64_t
--   kind 'bool'  a Lua condition, which is 0 or 1 in C
--   kind 'str'   a Lua string; literal: its text, if known
--   kind 'ptr'   a pointer to elements of type elem at the offset off of the payload, with the bounds base and limit
-- All have code, prec (the precedence of the code's outermost operator), depth (nesting of the code), type (the C
-- type), and temps (the temporary variables that the code reads; they are released when the code is used).
--
-- LuaJIT miscompiles some operations on narrow and 64-bit integers. Comments mark the workarounds.
-- tests/unit/bindings/expr/gcc_spec.lua searches for more such bugs.

local bit = require 'bit'
local types = require 'bindings.expr.types'

local TYPES = types.INTEGERS
local I32 = TYPES.i32

local LIMIT = 2 ^ 51 -- LuaJIT's bit operations wrap smaller numbers exactly

-- Lua's operator precedences.
local OR, AND, COMPARE, ADD, MUL, UNARY, ATOM = 1, 2, 3, 5, 6, 7, 10

local NONE = {}

local BITWISE = { ['&'] = 'band', ['|'] = 'bor', ['^'] = 'bxor' }

local function merge(a, b)
  if not b or #b == 0 then return a end
  if #a == 0 then return b end
  local all = {}
  for _, temp in ipairs(a) do all[#all + 1] = temp end
  for _, temp in ipairs(b) do all[#all + 1] = temp end
  return all
end

local function num(kind, code, prec, lo, hi, a, b)
  local value = {
    kind = 'num', type = kind, code = code, prec = prec, lo = lo, hi = hi,
    depth = math.max(a and a.depth or 0, b and b.depth or 0) + 1,
    temps = merge(a and a.temps or NONE, b and b.temps),
  }
  if lo == hi then
    value.code, value.depth = ('%.0f'):format(lo + 0), 0 -- not -0
    value.prec = lo < 0 and UNARY or ATOM
  end
  return value
end

local function constant(kind, value)
  return num(kind, nil, nil, value, value)
end

-- Returns a number of a type of up to 32 bits, which may have any value of the type.
local function typed(kind, code, prec, a, b)
  return num(kind, code, prec, TYPES[kind].lo, TYPES[kind].hi, a, b)
end

local function wide(kind, code, prec, a, b)
  return {
    kind = 'wide', type = kind, code = code, prec = prec,
    product = (a and a.product) or (b and b.product),
    depth = math.max(a and a.depth or 0, b and b.depth or 0) + 1,
    temps = merge(a and a.temps or NONE, b and b.temps),
  }
end

-- Returns a load from memory. narrow: compiled code may know that the value has fewer than 32 bits.
local function load(kind, code, prec, from)
  if TYPES[kind].size == 8 then return wide(kind, code, prec, from) end
  local value = typed(kind, code, prec, from)
  value.narrow = TYPES[kind].size < 4
  return value
end

local function bool(code, prec, a, b)
  return {
    kind = 'bool', type = 'i32', code = code, prec = prec,
    depth = math.max(a and a.depth or 0, b and b.depth or 0) + 1,
    temps = merge(a and a.temps or NONE, b and b.temps),
  }
end

local function str(code, a)
  return { kind = 'str', code = code, prec = ATOM, depth = (a and a.depth or 0) + 1, temps = a and a.temps or NONE }
end

local function literal(text)
  local value = str(('"%s"'):format((text:gsub('[%c"\\\128-\255]', function(char)
    return ('\\%03d'):format(char:byte())
  end))))
  value.literal = text
  return value
end

-- Returns the code as an operand of an operator with precedence prec.
local function operand(value, prec)
  return value.prec < prec and '(' .. value.code .. ')' or value.code
end

local function in_range(value, lo, hi)
  return value.kind == 'num' and value.lo >= lo and value.hi <= hi
end

-- Wraps a number into the range of its type.
local function norm(value)
  local kind = value.type
  local limits = TYPES[kind]
  if value.kind ~= 'num' or limits.size == 8 or in_range(value, limits.lo, limits.hi) then return value end
  if value.lo == value.hi then
    return constant(kind, kind == 'i32' and bit.tobit(value.lo) or value.lo % 2 ^ 32)
  end
  if kind == 'i32' then return typed('i32', ('tobit(%s)'):format(value.code), ATOM, value) end
  return typed('u32', operand(value, MUL) .. ' % 4294967296', MUL, value)
end

local function retyped(value, kind)
  local copy = {}
  for key, field in pairs(value) do copy[key] = field end
  copy.type = kind
  return copy
end

-- Returns the code of a number as an int64_t. Compiled code sign-extends values loaded as uint32_t (LuaJIT issue 1492)
-- and tests too many bits of a uint16_t. Adding 0.5 makes it convert the number instead.
local function int64(value)
  if in_range(value, I32.lo, I32.hi) and not value.narrow then return ('i64(%s)'):format(value.code) end
  local code = operand(value, ADD) .. ' + 0.5'
  return (value.lo >= 0 and 'i64(%s)' or 'i64(floor(%s))'):format(code)
end

-- Returns the code of the value as a 64-bit integer. kind is i64 or u64.
local function as_wide(value, kind)
  if value.kind == 'wide' then
    if value.type == kind then return operand(value, UNARY), value end
    return ('%s(%s)'):format(kind, value.code), value
  end
  value = norm(value)
  if value.lo == value.hi then
    if value.lo >= 0 then return ('%.0f%s'):format(value.lo, kind == 'i64' and 'LL' or 'ULL'), value end
    if kind == 'i64' then return ('(%.0fLL)'):format(value.lo), value end
  end
  return kind == 'i64' and int64(value) or ('u64(%s)'):format(int64(value)), value
end

-- Promotes conditions to 0 or 1, and types below int to int.
local function promote(value)
  if value.kind == 'bool' then
    return num('i32', operand(value, AND) .. ' and 1 or 0', OR, 0, 1, value)
  end
  return TYPES[value.type].size < 4 and retyped(value, 'i32') or value
end

-- Returns the code of a 32-bit operand of band(). Compiled code takes the sign of `band(byte, mask)` from bit 7 if it
-- has just loaded the byte. Adding zero32[0] converts the byte to an int first.
local function band_operand(value)
  return value.narrow and operand(value, ADD) .. ' + zero32[0]' or value.code
end

-- Converts a promoted value to a type of at least 32 bits. The result may still need norm().
local function widen(value, kind)
  if value.type == kind then return value end
  if TYPES[kind].size == 4 then
    if value.kind == 'num' then return retyped(value, kind) end
    local narrowed = num(kind, ('tobit(%s)'):format(value.code), ATOM, I32.lo, I32.hi, value)
    narrowed.product = value.product
    return narrowed
  end
  value = norm(value)
  if value.kind == 'num' and (kind == 'i64' or value.lo >= 0) then return retyped(value, kind) end
  return wide(kind, as_wide(value, kind), ATOM, value)
end

-- Converts a value to any integer type, as C does.
local function convert(value, kind)
  value = promote(value)
  local limits = TYPES[kind]
  if limits.size >= 4 then return norm(widen(value, kind)) end
  if in_range(value, limits.lo, limits.hi) then return retyped(value, kind) end
  value = widen(value, 'i32')
  if not limits.signed then
    return typed(kind, ('band(%s, %d)'):format(band_operand(value), limits.hi), ATOM, value)
  end
  local shift = 32 - limits.size * 8
  return typed(kind, ('arshift(lshift(%s, %d), %d)'):format(value.code, shift, shift), ATOM, value)
end

-- Returns the code of an operand of a comparison, possibly with zero. Compiled code does not test a product for zero
-- (LuaJIT issue 1376), so products are not compared directly.
local function comparand(value, code)
  if not value.product then return code or operand(value, ADD) end
  return ('bor(%s, %s[0])'):format(code or value.code, value.kind == 'wide' and 'zero' or 'zero32')
end

-- Returns + - * of two numbers of the same type; nil if the result might not be exact.
local function number_arith(sign, a, b, kind)
  local lo, hi
  if sign == '+' then
    lo, hi = a.lo + b.lo, a.hi + b.hi
  elseif sign == '-' then
    lo, hi = a.lo - b.hi, a.hi - b.lo
  else
    local w, x, y, z = a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi
    lo, hi = math.min(w, x, y, z), math.max(w, x, y, z)
  end
  if lo <= -LIMIT or hi >= LIMIT or (kind == 'u64' and lo < 0) then return nil end
  local prec = sign == '*' and MUL or ADD
  local code = ('%s %s %s'):format(operand(a, prec), sign, operand(b, prec + 1))
  local value = num(kind, code, prec, lo, hi, a, b)
  if a.prec >= prec then value.depth = math.max(a.depth, b.depth + 1) end
  value.negative_zero = a.negative_zero or b.negative_zero or (sign == '*' and (a.lo < 0 or b.lo < 0))
  return value
end

local function wide_arith(sign, a, b, kind)
  local target = TYPES[kind].size == 4 and 'i64' or kind
  local left, from_a = as_wide(a, target)
  local right, from_b = as_wide(b, target)
  local value = wide(target, ('%s %s %s'):format(left, sign, right), sign == '*' and MUL or ADD, from_a, from_b)
  value.product = value.product or sign == '*'
  return widen(value, kind)
end

local function arith(sign, a, b)
  local kind = types.common(a, b)
  a, b = widen(a, kind), widen(b, kind)
  if a.kind == 'num' and b.kind == 'num' then
    return number_arith(sign, a, b, kind) or number_arith(sign, norm(a), norm(b), kind)
      or wide_arith(sign, a, b, kind)
  end
  return wide_arith(sign, a, b, kind)
end

-- Returns the smallest 2^n - 1 that is >= value.
local function all_ones(value)
  local ones = 0
  while ones < value do ones = ones * 2 + 1 end
  return ones
end

local function bitwise(sign, a, b)
  local kind = types.common(a, b)
  a, b = widen(a, kind), widen(b, kind)
  local positive_a, positive_b = in_range(a, 0, I32.hi), in_range(b, 0, I32.hi)
  local narrow = in_range(a, I32.lo, I32.hi) and in_range(b, I32.lo, I32.hi)
  local masked = sign == '&' and (positive_a or positive_b)
  if TYPES[kind].size == 8 and not (masked or (narrow and (kind == 'i64' or (positive_a and positive_b)))) then
    local left, from_a = as_wide(a, kind)
    local right, from_b = as_wide(b, kind)
    return wide(kind, ('%s(%s, %s)'):format(BITWISE[sign], left, right), ATOM, from_a, from_b)
  end
  local lo, hi = I32.lo, I32.hi
  if masked then
    lo, hi = 0, math.min(positive_a and a.hi or I32.hi, positive_b and b.hi or I32.hi)
  elseif positive_a and positive_b then
    lo, hi = sign == '|' and math.max(a.lo, b.lo) or 0, all_ones(math.max(a.hi, b.hi))
  end
  a, b = widen(a, 'i32'), widen(b, 'i32') -- the result needs only the low 32 bits
  return num(kind, ('%s(%s, %s)'):format(BITWISE[sign], band_operand(a), band_operand(b)), ATOM, lo, hi, a, b)
end

local function is_string(value)
  return value.kind == 'str' or (value.kind == 'ptr' and value.elem ~= nil and TYPES[value.elem].size == 1)
end

return {
  LIMIT = LIMIT,
  BITWISE = BITWISE,
  NONE = NONE,
  OR = OR,
  AND = AND,
  COMPARE = COMPARE,
  ADD = ADD,
  MUL = MUL,
  UNARY = UNARY,
  ATOM = ATOM,
  merge = merge,
  num = num,
  constant = constant,
  typed = typed,
  wide = wide,
  load = load,
  bool = bool,
  str = str,
  literal = literal,
  operand = operand,
  in_range = in_range,
  norm = norm,
  retyped = retyped,
  as_wide = as_wide,
  promote = promote,
  widen = widen,
  convert = convert,
  comparand = comparand,
  number_arith = number_arith,
  arith = arith,
  bitwise = bitwise,
  is_string = is_string,
}
