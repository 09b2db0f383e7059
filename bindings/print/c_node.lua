-- SPDX-License-Identifier: GPL-2.0-only
--- C's integer arithmetic as Lua source: expressions with C's types, conversions and wrap-around.
--- int and unsigned are Lua numbers, 64-bit integers are cdata, so every value is exact. The code
--- uses the functions of `bit` by their names, and i64 and u64 for the two 64-bit types.
local bit = require 'bit'
local ffi = require 'ffi'

-- An expression is a node { t = type, code = Lua source }, where t is one of
--   i, u, l, U  int, unsigned int, long, unsigned long (all pointers too)
--   b           a condition; code gives true or false
--   s           a string
--   m           bytes of memory; what else it holds is the parser's business
-- or nil for an `unknown` name. k: the code is constant. small: the largest value of an int or
-- unsigned, where that fits 31 bits. flip: the code of a load as the other of i and u.
local CODE_MAX = 16384 -- bytes: local variables can double the code with every line
local RANK = { i = 1, u = 2, l = 3, U = 4 }

--- Ends the compilation: this construct is not translated.
local function give_up(...) error({ reason = string.format(...) }, 0) end

local FOLD_ENV = {
  i64 = ffi.typeof 'int64_t',
  u64 = ffi.typeof 'uint64_t',
  tonumber = tonumber,
}
for _, name in ipairs { 'band', 'bor', 'bxor', 'bnot', 'lshift', 'rshift', 'arshift', 'tobit' } do
  FOLD_ENV[name] = bit[name]
end

--- Value of a constant node.
local function value_of(n) return setfenv(loadstring('return ' .. n.code), FOLD_ENV)() end

local function literal(v)
  if type(v) == 'boolean' then return tostring(v) end
  local text = type(v) == 'cdata' and tostring(v) or string.format('%d', v)
  return v < 0 and '(' .. text .. ')' or text
end

--- The code of a node, which has a limit.
local function sized(code)
  if #code > CODE_MAX then give_up 'too long an expression' end
  return code
end

--- A node whose code is made of the operands' code; it is computed now where they are constant.
local function node(t, code, ...)
  local n = { t = t, code = sized(code), k = true }
  for i = 1, select('#', ...) do
    if not select(i, ...).k then n.k = nil end
  end
  if n.k then n.code = literal(value_of(n)) end
  return n
end

local NO_NUMBER = { s = 'a string as a number', m = 'an array as a number' }

--- The node as an operand of arithmetic.
local function number(n)
  if n.t == 'b' then return node('i', '(' .. n.code .. ' and 1 or 0)', n) end
  if n.unknown then error({ reason = ("unknown name '%s'"):format(n.unknown), unknown = true }, 0) end
  if not RANK[n.t] then give_up(NO_NUMBER[n.t]) end
  return n
end

--- The node converted to a number type.
local function convert(n, t)
  n = number(n)
  if n.t == t then return n end
  local code = n.code
  if t == 'i' then
    code = n.flip or 'tobit(' .. code .. ')'
  elseif t == 'u' then
    if n.small then return { t = t, code = code, k = n.k, small = n.small } end
    code = n.flip or (n.t == 'i' and '(' .. code or '(tobit(' .. code .. ')') .. ' % 4294967296)'
  elseif t == 'l' then
    code = 'i64(' .. code .. ')'
  elseif n.t == 'l' or n.small or n.t == 'u' then
    code = 'u64(' .. code .. ')'
  else -- a negative number does not convert to uint64_t
    code = 'u64(i64(' .. code .. '))'
  end
  return node(t, code, n)
end

--- The node converted to an integer of one or two bytes.
local function narrow(n, bytes, signed)
  n = convert(n, 'i')
  if signed then
    local unused = 32 - 8 * bytes
    return node('i', ('arshift(lshift(%s, %d), %d)'):format(n.code, unused, unused), n)
  end
  if n.small and n.small < 256 ^ bytes then return n end
  local result = node('i', ('band(%s, %d)'):format(n.code, 256 ^ bytes - 1), n)
  result.small = 256 ^ bytes - 1
  return result
end

--- The node as an operand of a condition.
local function condition(n)
  if n.t == 'b' then return n end
  if n.t == 'm' or n.t == 's' then return node('b', 'true') end
  n = number(n)
  return node('b', '(' .. n.code .. ' ~= 0)', n)
end

local function common_type(a, b) return RANK[a.t] > RANK[b.t] and a.t or b.t end

--- Wraps what was computed with more bits to the 32 of int or unsigned.
local function wrap(t, code) return t == 'u' and '(' .. code .. ' % 4294967296)' or 'tobit(' .. code .. ')' end

local function arithmetic(op, a, b)
  a, b = number(a), number(b)
  local t = common_type(a, b)
  a, b = convert(a, t), convert(b, t)
  if t == 'l' or t == 'U' then return node(t, ('(%s %s %s)'):format(a.code, op, b.code), a, b) end
  if op == '+' or op == '-' then return node(t, wrap(t, ('(%s %s %s)'):format(a.code, op, b.code)), a, b) end
  -- Products need more than 53 bits, quotients C's rounding: int64_t has both.
  local code = ('tobit(i64(%s) %s i64(%s))'):format(a.code, op, b.code)
  return node(t, t == 'u' and wrap(t, code) or code, a, b)
end

local BIT_FUNCTION = { ['&'] = 'band', ['|'] = 'bor', ['^'] = 'bxor' }

local function bitwise(op, a, b)
  a, b = number(a), number(b)
  local t = common_type(a, b)
  a, b = convert(a, t), convert(b, t)
  local code = ('%s(%s, %s)'):format(BIT_FUNCTION[op], a.code, b.code)
  local mask = op == '&' and (b.k and b or a.k and a)
  local small = mask and t ~= 'l' and t ~= 'U' and value_of(mask) >= 0 and value_of(mask) < 2 ^ 31 or nil
  local n = node(t, t == 'u' and not small and wrap(t, code) or code, a, b)
  n.small = small
  return n
end

local function shift(op, a, b)
  a, b = number(a), convert(b, 'i')
  local t = a.t
  local name = op == '<<' and 'lshift' or (t == 'i' or t == 'l') and 'arshift' or 'rshift'
  local code = ('%s(%s, %s)'):format(name, a.code, b.code)
  local n = node(t, t == 'u' and wrap(t, code) or code, a, b)
  n.small = op == '>>' and a.small or nil
  return n
end

local function compare(op, a, b)
  if a.t == 'm' or b.t == 'm' or a.t == 's' or b.t == 's' then give_up('comparison of arrays') end
  a, b = number(a), number(b)
  local t = common_type(a, b)
  a, b = convert(a, t), convert(b, t)
  return node('b', ('(%s %s %s)'):format(a.code, op == '!=' and '~=' or op, b.code), a, b)
end

local function logical(op, a, b)
  a, b = condition(a), condition(b)
  return node('b', ('(%s %s %s)'):format(a.code, op == '&&' and 'and' or 'or', b.code), a, b)
end

local function complement(n)
  n = number(n)
  local code = 'bnot(' .. n.code .. ')'
  return node(n.t, n.t == 'u' and wrap('u', code) or code, n)
end

local function negate(n) return arithmetic('-', { t = 'i', code = '0', k = true }, n) end

local function invert(n)
  n = condition(n)
  return node('b', '(not ' .. n.code .. ')', n)
end

local function choose(when, a, b)
  when, a, b = condition(when), number(a), number(b)
  local t = common_type(a, b)
  a, b = convert(a, t), convert(b, t)
  return node(t, ('(%s and %s or %s)'):format(when.code, a.code, b.code), when, a, b)
end

-- Operators by precedence, the loosest first.
local BINARY = {}
for level, group in ipairs {
  { '||', logical }, { '&&', logical }, { '|', bitwise }, { '^', bitwise }, { '&', bitwise },
  { '== !=', compare }, { '< > <= >=', compare }, { '<< >>', shift }, { '+ -', arithmetic },
  { '* / %', arithmetic },
} do
  for op in group[1]:gmatch '%S+' do
    BINARY[op] = { level = level, build = group[2] }
  end
end

return {
  RANK = RANK,
  BINARY = BINARY,
  give_up = give_up,
  sized = sized,
  literal = literal,
  value_of = value_of,
  node = node,
  number = number,
  convert = convert,
  narrow = narrow,
  condition = condition,
  choose = choose,
  complement = complement,
  negate = negate,
  invert = invert,
}
