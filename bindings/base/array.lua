-- SPDX-License-Identifier: GPL-2.0-only
--- Arrays of numbers, for what belongs to small integers such as the ids of lib.intern, threads or CPUs.
---
---   local bytes = array.new(MAX_KEYS + 1)
---   bytes[id] = bytes[id] + ev.bytes_alloc
---
--- Elements are counted from 0 and are 0 at first. Unlike a Lua table, an array never gets new entries, so compiled
--- code has one path; and elements that are not used cost no memory.
local ffi = require 'ffi'
local check = require 'bindings.base.check'
local libc = require 'bindings.base.libc'

local cast, tonumber, type = ffi.cast, tonumber, type
local array = {}

local MAX = 2 ^ 31 - 1
local DOUBLES = ffi.typeof 'double *'
local memory_of = setmetatable({}, { __mode = 'k' }) -- lives as long as its array

local function outside(a, i)
  error(('index %s is outside of the array, which has elements 0 to %.0f'):format(check.shown(i), a._n - 1), 3)
end

--- The number that is stored for a 64-bit integer.
local function number_of(value)
  local n = type(value) == 'cdata' and tonumber(value)
  return n or error(('an array holds numbers, not %s'):format(check.shown(value)), 3)
end

--- An index outside of 0 to `#a - 1`, or a value that is not a number, is an error.
---@class Array
---@field [integer] number

-- The address is no pointer, which could be indexed.
local new_array = ffi.metatype('struct { const uintptr_t _at; const int32_t _n; }', {
  __index = function(a, i)
    if type(i) ~= 'number' or not (i >= 0 and i < a._n) then outside(a, i) end
    return cast(DOUBLES, a._at)[i]
  end,
  __newindex = function(a, i, value)
    if type(i) ~= 'number' or not (i >= 0 and i < a._n) then outside(a, i) end
    if type(value) ~= 'number' then value = number_of(value) end
    cast(DOUBLES, a._at)[i] = value
  end,
  __len = function(a) return a._n end,
})

--- An array of n zeros.
---@param n integer at most 2^31 - 1
---@return Array
function array.new(n)
  check.whole(n, 1, MAX, 'array.new takes the number of elements')
  local memory = check.allocated(libc.calloc(n, ffi.sizeof 'double'), 'an array')
  local new = new_array(cast('uintptr_t', memory), n)
  memory_of[new] = ffi.gc(memory, libc.free)
  return new
end

return array
