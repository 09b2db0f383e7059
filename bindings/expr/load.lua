-- SPDX-License-Identifier: GPL-2.0-only
-- Functions called by the code of compiled expressions. A string is (address, room): it ends at its first NUL or after
-- room bytes. All functions are compiled into the traces that use them, and only tostr() allocates.

local bit = require 'bit'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'

local cast, copy = ffi.cast, ffi.copy
local memcmp, bswap, rshift = libc.memcmp, bit.bswap, bit.rshift
local little_endian = ffi.abi('le')
local bytes_type = ffi.typeof('const uint8_t *')

-- fnmatch() needs a NUL after the string. A record's strings are shorter than 64 KiB.
local MAX_STRING = 65535
local buffer = ffi.new('char[?]', MAX_STRING + 1)

local helpers = {}

local function length(s, room)
  return tonumber(libc.strnlen(s, room))
end

function helpers.bytes(text)
  return cast(bytes_type, text)
end

function helpers.tostr(s, room)
  return ffi.string(s, length(s, room))
end

--- Returns whether the string equals the text, which has n bytes and no NUL.
function helpers.same(s, room, text, n)
  return n <= room and memcmp(s, text, n) == 0 and (n == room or s[n] == 0)
end

function helpers.equal(a, a_room, b, b_room)
  local n = length(a, a_room)
  return n == length(b, b_room) and memcmp(a, b, n) == 0
end

function helpers.starts(s, room, text, n)
  return n <= room and memcmp(s, text, n) == 0
end

function helpers.ends(s, room, text, n)
  local len = length(s, room)
  return n <= len and memcmp(s + (len - n), text, n) == 0
end

function helpers.contains(s, room, text, n)
  return libc.memmem(s, length(s, room), text, n) ~= nil
end

function helpers.glob(s, room, pattern)
  local n = length(s, room)
  if n > MAX_STRING then return false end
  copy(buffer, s, n)
  buffer[n] = 0
  return libc.fnmatch(pattern, buffer, 0) == 0
end

--- Compares the first n characters. Returns -1, 0 or 1.
function helpers.strncmp(a, a_room, b, b_room, n)
  if n < 0 then n = 2 ^ 32 end -- C's size_t
  local a_len, b_len = length(a, math.min(a_room, n)), length(b, math.min(b_room, n))
  local order = memcmp(a, b, math.min(a_len, b_len))
  if order == 0 then order = a_len - b_len end
  return order < 0 and -1 or order > 0 and 1 or 0
end

function helpers.ntohl(value)
  return little_endian and bswap(value) or value
end

function helpers.ntohs(value)
  return little_endian and rshift(bswap(value), 16) or value
end

for _, name in ipairs { 'tobit', 'band', 'bor', 'bxor', 'bnot', 'lshift', 'rshift', 'arshift' } do
  helpers[name] = bit[name]
end
helpers.floor, helpers.ceil, helpers.min, helpers.max = math.floor, math.ceil, math.min, math.max
helpers.tonumber = tonumber
helpers.cast, helpers.i64, helpers.u64 = cast, ffi.typeof('int64_t'), ffi.typeof('uint64_t')
helpers.zero, helpers.zero32 = ffi.new('int64_t[1]'), ffi.new('int32_t[1]') -- zeros that compiled code does not fold
for bits = 3, 6 do -- string.format() takes no `const int64_t`
  local width = 2 ^ bits
  helpers['pi' .. width] = ffi.typeof(('int%d_t *'):format(width))
  helpers['pu' .. width] = ffi.typeof(('uint%d_t *'):format(width))
end

return helpers
