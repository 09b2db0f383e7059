-- SPDX-License-Identifier: GPL-2.0-only
--- 64-bit integers as two numbers, which arrays can hold: the nearest number, and what it lacks.
local ffi = require 'ffi'

local cast = ffi.cast
local wide = {}
local EXACT = 2 ^ 53

--- Returns the 64 bits of an integer that is a number.
local function bits_of(n)
  if n < 2 ^ 63 then return cast('int64_t', n) end
  return n < 2 ^ 64 and cast('int64_t', cast('uint64_t', n)) or 0LL
end

--- Returns what the number that is next to a 64-bit integer lacks.
---@param value integer64
---@param n number tonumber(value)
---@return number
function wide.lacks(value, n) return tonumber(cast('int64_t', value) - bits_of(n)) end

--- Returns the value that two numbers stand for: an integer64 beyond 2^53, the nearest number beyond 64 bits.
---@param n number
---@param rest number
---@return number|integer64
function wide.whole(n, rest)
  local all = n + rest
  if not (math.abs(all) >= EXACT and all <= 2 ^ 64 and n >= -2 ^ 63 and n <= 2 ^ 64) then return all end
  local value = bits_of(n) + rest
  if all >= 2 ^ 63 then value = cast('uint64_t', value) end
  return math.abs(tonumber(value) - all) < 2 ^ 62 and value or all -- the sum may have more bits
end

--- Returns whether a value is less than another, whatever their types are.
---@param a number|integer64
---@param b number|integer64
---@return boolean
function wide.is_less(a, b)
  local x, y = tonumber(a), tonumber(b)
  if x ~= y then return x < y end
  return a < b -- as they are next to the same number, their signs are the same
end

return wide
