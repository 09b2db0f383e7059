-- SPDX-License-Identifier: GPL-2.0-only
-- C's integer types, named i8 to i64 and u8 to u64 (int is i32, long is i64), and the types of literals and operators.

local types = {}

---@class IntegerType
---@field size integer bytes
---@field signed boolean|nil
---@field lo number|nil minimum of a type of up to 32 bits
---@field hi number|nil maximum of a type of up to 32 bits

---@type table<string, IntegerType>
types.INTEGERS = {
  i8 = { size = 1, signed = true, lo = -128, hi = 127 },
  u8 = { size = 1, lo = 0, hi = 255 },
  i16 = { size = 2, signed = true, lo = -32768, hi = 32767 },
  u16 = { size = 2, lo = 0, hi = 65535 },
  i32 = { size = 4, signed = true, lo = -2 ^ 31, hi = 2 ^ 31 - 1 },
  u32 = { size = 4, lo = 0, hi = 2 ^ 32 - 1 },
  i64 = { size = 8, signed = true },
  u64 = { size = 8 },
}

--- One-word type names in addition to C's own.
---@type table<string, string>
types.NAMES = { size_t = 'u64', ssize_t = 'i64', uintptr_t = 'u64', intptr_t = 'i64', pid_t = 'i32' }
for _, bits in ipairs { '8', '16', '32', '64' } do
  for sign, prefix in pairs { i = '', u = 'u' } do
    local short = (sign == 'i' and 's' or 'u') .. bits
    types.NAMES[short], types.NAMES['__' .. short] = sign .. bits, sign .. bits
    types.NAMES[('%sint%s_t'):format(prefix, bits)] = sign .. bits
  end
end

--- Returns the type of an integer literal: the first in C's list that can represent the value.
---@param value number|ffi.cdata*
---@param suffix string u, l, ll and their combinations
---@param decimal boolean
---@return string
function types.of_literal(value, suffix, decimal)
  local unsigned, long = suffix:find('[uU]'), suffix:find('[lL]')
  if not long then
    if not unsigned and value <= 0x7fffffff then return 'i32' end
    if (unsigned or not decimal) and value <= 0xffffffff then return 'u32' end
  end
  if not unsigned and value <= 0x7fffffffffffffffULL then return 'i64' end
  return 'u64'
end

local RANK = { i32 = 1, u32 = 2, i64 = 3, u64 = 4 }

--- Returns the common type of two promoted operands (the usual arithmetic conversions).
---@param a { type: string }
---@param b { type: string }
---@return string
function types.common(a, b)
  return RANK[a.type] > RANK[b.type] and a.type or b.type
end

return types
