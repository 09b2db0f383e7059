-- SPDX-License-Identifier: GPL-2.0-only
--- Values in print formats: C's integer arithmetic as Lua source, with C's types, conversions and wraparound. Integers
--- of up to 32 bits are Lua numbers and 64-bit integers are cdata, so all values are exact. The code calls the
--- functions of `bit` by name, and i64 and u64 as constructors.
local bit = require 'bit'
local ffi = require 'ffi'
local types = require 'bindings.expr.types'

---@class PrintValue
---@field type 'i32'|'u32'|'i64'|'u64'|'bool'|'string'|'bytes'|'unknown' pointers are u64; the code of a
---  bool is a Lua condition; see printfmt_codegen.lua for bytes
---@field code string Lua source
---@field constant number|boolean|ffi.cdata*|nil the value, if known
---@field small number|nil an upper bound below 2^31 of a nonnegative i32 or u32, if known
---@field flip string|nil the code of an i32 load as u32, or the reverse
---@field name string|nil the name of an unknown value

local CODE_MAX = 16384 -- bytes; each local variable can double the code

--- Aborts the compilation at an unsupported construct.
local function give_up(...) error({ message = string.format(...) }, 0) end

local FOLD_ENV = {
  i64 = ffi.typeof 'int64_t',
  u64 = ffi.typeof 'uint64_t',
  tonumber = tonumber,
}
for _, name in ipairs { 'band', 'bor', 'bxor', 'bnot', 'lshift', 'rshift', 'arshift', 'tobit' } do
  FOLD_ENV[name] = bit[name]
end

local function constant(type, v)
  if FOLD_ENV[type] then v = FOLD_ENV[type](v) end
  local code = _G.type(v) == 'number' and ('%d'):format(v) or tostring(v)
  return { type = type, code = code:find '^-' and '(' .. code .. ')' or code, constant = v }
end

--- Checks that the code is not too long.
local function sized(code)
  if #code > CODE_MAX then give_up 'too long an expression' end
  return code
end

--- Returns a value whose code is built from up to three operands. If they are constant, so is the value.
local function value(type, code, a, b, c)
  if a.constant == nil or b and b.constant == nil or c and c.constant == nil then
    return { type = type, code = sized(code) }
  end
  return constant(type, setfenv(loadstring('return ' .. sized(code)), FOLD_ENV)())
end

--- Returns the value as an arithmetic operand.
local function number(n)
  if n.type == 'bool' then return value('i32', '(' .. n.code .. ' and 1 or 0)', n) end
  if n.type == 'unknown' then error({ message = ("unknown name '%s'"):format(n.name), unknown = true }, 0) end
  if n.type == 'string' then give_up 'a string as a number' end
  if n.type == 'bytes' then give_up 'an array as a number' end
  return n
end

--- Converts the value to an integer of at least 32 bits.
local function convert_wide(n, type)
  n = number(n)
  if n.type == type then return n end
  local code = n.code
  if type == 'i32' then
    code = n.flip or 'tobit(' .. code .. ')'
  elseif type == 'u32' then
    if n.small then return { type = type, code = code, constant = n.constant, small = n.small } end
    code = n.flip or (n.type == 'i32' and '(' .. code or '(tobit(' .. code .. ')') .. ' % 4294967296)'
  elseif type == 'i64' then
    code = 'i64(' .. code .. ')'
  elseif n.type == 'i64' or n.small or n.type == 'u32' then
    code = 'u64(' .. code .. ')'
  else -- a negative number does not convert to uint64_t
    code = 'u64(i64(' .. code .. '))'
  end
  return value(type, code, n)
end

--- Converts the value to any integer type. The result of a conversion to fewer than 32 bits is an i32.
local function convert(n, type)
  local limits = types.INTEGERS[type]
  if limits.size >= 4 then return convert_wide(n, type) end
  n = convert_wide(n, 'i32')
  if limits.signed then
    local unused = 32 - 8 * limits.size
    return value('i32', ('arshift(lshift(%s, %d), %d)'):format(n.code, unused, unused), n)
  end
  if n.small and n.small <= limits.hi then return n end
  local result = value('i32', ('band(%s, %d)'):format(n.code, limits.hi), n)
  result.small = limits.hi
  return result
end

--- Converts the value to a condition.
local function condition(n)
  if n.type == 'bool' then return n end
  if n.type == 'bytes' or n.type == 'string' then return constant('bool', true) end
  n = number(n)
  return value('bool', '(' .. n.code .. ' ~= 0)', n)
end

--- Returns both operands converted to their common type, and that type.
local function converted(a, b)
  a, b = number(a), number(b)
  local type = types.common(a, b)
  return convert(a, type), convert(b, type), type
end

--- Wraps a result of more than 32 bits to i32 or u32.
local function wrap(type, code) return type == 'u32' and '(' .. code .. ' % 4294967296)' or 'tobit(' .. code .. ')' end

local function arithmetic(sign, a, b)
  local type
  a, b, type = converted(a, b)
  local code = ('(%s %s %s)'):format(a.code, sign, b.code)
  if type == 'i64' or type == 'u64' then return value(type, code, a, b) end
  if sign == '+' or sign == '-' then return value(type, wrap(type, code), a, b) end
  -- Products need more than 53 bits, and quotients need C's rounding. int64_t provides both.
  code = ('tobit(i64(%s) %s i64(%s))'):format(a.code, sign, b.code)
  return value(type, type == 'u32' and wrap(type, code) or code, a, b)
end

local BIT_FUNCTION = { ['&'] = 'band', ['|'] = 'bor', ['^'] = 'bxor' }

local function bitwise(sign, a, b)
  local type
  a, b, type = converted(a, b)
  local code = ('%s(%s, %s)'):format(BIT_FUNCTION[sign], a.code, b.code)
  local mask = sign == '&' and (b.constant or a.constant)
  local small = mask and (type == 'i32' or type == 'u32') and mask >= 0 and mask < 2 ^ 31 or nil
  local result = value(type, type == 'u32' and not small and wrap(type, code) or code, a, b)
  result.small = small and mask
  return result
end

local function shift(sign, a, b)
  a, b = number(a), convert(b, 'i32')
  local type = a.type
  local name = sign == '<<' and 'lshift' or types.INTEGERS[type].signed and 'arshift' or 'rshift'
  local code = ('%s(%s, %s)'):format(name, a.code, b.code)
  local result = value(type, type == 'u32' and wrap(type, code) or code, a, b)
  result.small = sign == '>>' and a.small or nil
  return result
end

local function compare(sign, a, b)
  if a.type == 'bytes' or b.type == 'bytes' or a.type == 'string' or b.type == 'string' then
    give_up('comparison of arrays')
  end
  a, b = converted(a, b)
  return value('bool', ('(%s %s %s)'):format(a.code, sign == '!=' and '~=' or sign, b.code), a, b)
end

local function logical(sign, a, b)
  a, b = condition(a), condition(b)
  return value('bool', ('(%s %s %s)'):format(a.code, sign == '&&' and 'and' or 'or', b.code), a, b)
end

local BINARY = {}
for signs, operator in pairs {
  ['|| &&'] = logical, ['| ^ &'] = bitwise, ['<< >>'] = shift, ['+ - * / %'] = arithmetic,
  ['== != < > <= >='] = compare,
} do
  for sign in signs:gmatch '%S+' do
    BINARY[sign] = operator
  end
end

local UNARY = { ['+'] = number }

UNARY['-'] = function(n) return arithmetic('-', constant('i32', 0), n) end

UNARY['~'] = function(n)
  n = number(n)
  local code = 'bnot(' .. n.code .. ')'
  return value(n.type, n.type == 'u32' and wrap('u32', code) or code, n)
end

UNARY['!'] = function(n)
  n = condition(n)
  return value('bool', '(not ' .. n.code .. ')', n)
end

local function choose(when, a, b)
  local type
  when = condition(when)
  a, b, type = converted(a, b)
  return value(type, ('(%s and %s or %s)'):format(when.code, a.code, b.code), when, a, b)
end

return {
  UNARY = UNARY,
  BINARY = BINARY,
  give_up = give_up,
  sized = sized,
  constant = constant,
  number = number,
  convert = convert,
  condition = condition,
  choose = choose,
}
