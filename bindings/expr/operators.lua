-- SPDX-License-Identifier: GPL-2.0-only
-- Methods of the code generator (codegen.lua): unary and binary operators. Arithmetic that needs no statements is in
-- value.lua.

local types = require 'bindings.expr.types'
local value_of = require 'bindings.expr.value'

local TYPES, LIMIT, BITWISE = types.INTEGERS, value_of.LIMIT, value_of.BITWISE
local COMPARE, ADD, MUL, UNARY, ATOM = value_of.COMPARE, value_of.ADD, value_of.MUL, value_of.UNARY, value_of.ATOM
local merge, num, constant, wide = value_of.merge, value_of.num, value_of.constant, value_of.wide
local bool, operand, in_range, norm = value_of.bool, value_of.operand, value_of.in_range, value_of.norm
local as_wide, widen, comparand = value_of.as_wide, value_of.widen, value_of.comparand
local number_arith, arith, bitwise = value_of.number_arith, value_of.arith, value_of.bitwise
local is_string = value_of.is_string
local I32 = TYPES.i32

local operators = {}

-- Divides two numbers that may be negative. The quotient is truncated toward zero.
function operators:signed_division(sign, a, b, kind, column)
  a, b = self:spill(a, column), self:spill(b, column)
  local code = ('%s / %s'):format(operand(a, MUL), operand(b, UNARY))
  local quotient = self:spill(num(kind, code, MUL, -LIMIT, LIMIT), column)
  self:emit('%s = %s < 0 and ceil(%s) or floor(%s)', quotient.code, quotient.code, quotient.code, quotient.code)
  local max = math.max(math.abs(a.lo), math.abs(a.hi))
  if sign == '/' then
    self:release(a)
    self:release(b)
    quotient.lo, quotient.hi = -max, max
    if b.lo > 0 then
      quotient.lo, quotient.hi = a.lo < 0 and a.lo or 0, a.hi > 0 and a.hi or 0
    end
    quotient.negative_zero = true
    return quotient
  end
  local rest = math.min(max, math.max(math.abs(b.lo), math.abs(b.hi)) - 1)
  code = ('%s - %s * %s'):format(operand(a, ADD), quotient.code, operand(b, UNARY))
  local value = num(kind, code, ADD, a.lo < 0 and -rest or 0, a.hi > 0 and rest or 0, a, b)
  if value.lo ~= value.hi then value.temps = merge(value.temps, quotient.temps) else self:release(quotient) end
  return value
end

function operators:division(sign, a, b, column)
  local kind = types.common(a, b)
  a, b = norm(widen(a, kind)), norm(widen(b, kind))
  if b.kind == 'wide' then
    b = self:spill(b, column)
    self:check(comparand(b) .. ' == 0')
  elseif b.lo == 0 and b.hi == 0 then
    self:fail(column, 'division by zero')
  elseif b.lo <= 0 and b.hi >= 0 then
    b = self:spill(b, column)
    self:check(comparand(b) .. ' == 0')
  end
  if a.kind == 'wide' or b.kind == 'wide' then
    local left, from_a = as_wide(a, kind)
    local right, from_b = as_wide(b, kind)
    return wide(kind, ('%s %s %s'):format(left, sign, right), MUL, from_a, from_b)
  end
  if a.lo < 0 or b.lo < 0 then return self:signed_division(sign, a, b, kind, column) end
  local min_divisor = math.max(b.lo, 1)
  if sign == '/' then
    local code = ('floor(%s / %s)'):format(operand(a, MUL), operand(b, UNARY))
    return num(kind, code, ATOM, math.floor(a.lo / b.hi), math.floor(a.hi / min_divisor), a, b)
  end
  local code = ('%s %% %s'):format(operand(a, MUL), operand(b, UNARY))
  return num(kind, code, MUL, 0, math.min(a.hi, b.hi - 1), a, b)
end

-- Generates a shift. Constant counts of 32 or more, which are undefined in C for 32-bit values, shift the value as a
-- 64-bit one, so that keys such as `(_cpu << 32) | vec` need no cast. Other counts are taken modulo the width, as CPUs
-- do.
function operators:shift(sign, a, b, column)
  b = widen(b, 'i32')
  if TYPES[a.type].size == 4 and b.lo == b.hi and b.lo >= 32 then
    a = widen(a, TYPES[a.type].signed and 'i64' or 'u64')
  end
  local kind = a.type
  local limits = TYPES[kind]
  local width = limits.size * 8
  local count = b.lo == b.hi and b.lo % width or nil
  if count then b = constant('i32', count) end
  if sign == '<<' then
    local product = count and a.kind == 'num'
      and (number_arith('*', a, constant(kind, 2 ^ count), kind)
        or number_arith('*', norm(a), constant(kind, 2 ^ count), kind))
    if product then return product end
    if width == 32 then
      return num(kind, ('lshift(%s, %s)'):format(a.code, b.code), ATOM, I32.lo, I32.hi, a, b)
    end
    local code, from = as_wide(a, kind)
    return wide(kind, ('lshift(%s, %s)'):format(code, b.code), ATOM, from, b)
  end

  a = norm(a)
  local shift = limits.signed and 'arshift' or 'rshift'
  if a.kind == 'num' and count then
    local lo, hi = math.floor(a.lo / 2 ^ count), math.floor(a.hi / 2 ^ count)
    if count == 0 then return a end
    if width == 32 then return num(kind, ('%s(%s, %d)'):format(shift, a.code, count), ATOM, lo, hi, a) end
    local value = num(kind, ('floor(%s / %.0f)'):format(operand(a, MUL), 2 ^ count), ATOM, lo, hi, a)
    value.negative_zero = a.negative_zero
    return value
  end
  if width == 32 then
    local lo, hi = I32.lo, I32.hi
    if in_range(a, lo, hi) then lo, hi = math.min(a.lo, 0), math.max(a.hi, 0) end
    return num(kind, ('%s(%s, %s)'):format(shift, a.code, b.code), ATOM, lo, hi, a, b)
  end
  a = self:shallow(a, column)
  -- Compiled code shifts constants incorrectly (LuaJIT issue 1079). Adding zero[0] makes it a variable.
  local code, from = as_wide(a, kind)
  return wide(kind, ('%s(%s + zero[0], %s)'):format(shift, code, b.code), ATOM, from, b)
end

function operators:unary(node)
  if node.sign == '!' then
    local value = self:condition(self:expression(node.a), node.a.column)
    return bool('not ' .. operand(value, UNARY), UNARY, value)
  end
  local value = self:integer(self:expression(node.a), node.a.column)
  if node.sign == '+' then return value end
  if node.sign == '-' then return arith('-', constant(value.type, 0), value) end
  if value.kind == 'num' and (TYPES[value.type].size == 4 or value.type == 'i64') then
    return arith('-', constant(value.type, -1), value)
  end
  local code, from = as_wide(value, value.type)
  return wide(value.type, ('bnot(%s)'):format(code), ATOM, from)
end

local COMPARE_SIGNS = { ['=='] = '==', ['!='] = '~=', ['<'] = '<', ['<='] = '<=', ['>'] = '>', ['>='] = '>=' }

local function compare_numbers(sign, a, b)
  local kind = types.common(a, b)
  a, b = norm(widen(a, kind)), norm(widen(b, kind))
  local left, right
  if a.kind == 'wide' or b.kind == 'wide' then
    left, right = as_wide(a, kind), as_wide(b, kind)
  end
  left, right = comparand(a, left), comparand(b, right)
  return bool(('%s %s %s'):format(left, COMPARE_SIGNS[sign], right), COMPARE, a, b)
end

function operators:binary_values(node, a, b)
  local sign = node.sign
  if sign == '~' then
    if not (is_string(a) and is_string(b)) then self:fail(node.column, "'~' requires a string and a glob") end
    if b.kind == 'str' and b.literal then return self:glob(a, b.literal, false, node.column) end
    return self:glob_of(a, b, node.column)
  end
  if COMPARE_SIGNS[sign] then
    if is_string(a) and is_string(b) then return self:compare_strings(sign, a, b, node) end
    if a.kind == 'ptr' and b.kind == 'ptr' then return compare_numbers(sign, a.off, b.off) end
  elseif sign == '+' or sign == '-' then
    if a.kind == 'ptr' and b.kind == 'ptr' and sign == '-' then
      local size = self:element(a, node.column).size
      return self:division('/', arith('-', a.off, b.off), constant('i64', size), node.column)
    elseif a.kind == 'ptr' then
      return self:offset(a, b, sign, node.b.column)
    elseif b.kind == 'ptr' and sign == '+' then
      return self:offset(b, a, sign, node.a.column)
    end
  end
  a, b = self:integer(a, node.a.column), self:integer(b, node.b.column)
  if COMPARE_SIGNS[sign] then return compare_numbers(sign, a, b) end
  if BITWISE[sign] then return bitwise(sign, a, b) end
  if sign == '<<' or sign == '>>' then return self:shift(sign, a, b, node.column) end
  if sign == '/' or sign == '%' then return self:division(sign, a, b, node.column) end
  return arith(sign, a, b)
end

return operators
