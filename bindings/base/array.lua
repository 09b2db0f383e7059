-- SPDX-License-Identifier: GPL-2.0-only
--- Arrays of numbers, indexed by small integers such as ids of lib.intern, thread ids or CPUs.
---
---   local bytes = array.new(MAX_KEYS + 1)
---   bytes[id] = bytes[id] + ev.bytes_alloc
---
--- Indexes start at 0, and all elements are initially 0. Unlike a Lua table, an array never grows, so compiled code
--- has a single path. Elements that are never touched cost no memory.
local ffi = require 'ffi'
local check = require 'bindings.base.check'
local libc = require 'bindings.base.libc'

local cast, tonumber, type = ffi.cast, tonumber, type
local array = {}

local MAX = 2 ^ 31 - 1
local DOUBLES = ffi.typeof 'double *'
local memory_of = setmetatable({}, { __mode = 'k' }) -- freed with its array

local function out_of_range(a, i)
  if a._n == 0 then error(('index %s: the array is empty'):format(check.shown(i)), 3) end
  error(('index %s is out of range 0..%.0f'):format(check.shown(i), a._n - 1), 3)
end

--- Converts a 64-bit integer to the number to store.
local function to_number(value)
  local n = type(value) == 'cdata' and tonumber(value)
  return n or error(('an array holds numbers, not %s'):format(check.shown(value)), 3)
end

--- An index outside 0..`#a - 1` or a value that is not a number raises an error.
---@class Array
---@field [integer] number

-- The address is an integer because scripts could index a pointer.
local new_array = ffi.metatype('struct { const uintptr_t _at; const int32_t _n; }', {
  __index = function(a, i)
    if type(i) ~= 'number' or not (i >= 0 and i < a._n) then out_of_range(a, i) end
    return cast(DOUBLES, a._at)[i]
  end,
  __newindex = function(a, i, value)
    if type(i) ~= 'number' or not (i >= 0 and i < a._n) then out_of_range(a, i) end
    if type(value) ~= 'number' then value = to_number(value) end
    cast(DOUBLES, a._at)[i] = value
  end,
  __len = function(a) return a._n end,
})

--- Returns an array of n zeros.
---@param n integer from 0 to 2^31 - 1
---@return Array
function array.new(n)
  check.whole(n, 0, MAX, 'array.new takes the number of elements')
  local memory = check.allocated(libc.calloc(n, ffi.sizeof 'double'), 'an array')
  local new = new_array(cast('uintptr_t', memory), n)
  memory_of[new] = ffi.gc(memory, libc.free)
  return new
end

return array
