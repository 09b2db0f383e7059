-- SPDX-License-Identifier: GPL-2.0-only
--- A table of live objects, such as allocations or requests, by address (native/objects.h).
---
---   local live = objects.new(2 ^ 20)
---   live:put(0, ev.ptr, ev.bytes_alloc, ev._time, ev._tid, ev._stack, 0) -- allocated
---   local object = live:take(0, ev.ptr)                                  -- freed
---   local age = object and ev._time - object.time
local ffi = require 'ffi'
local check = require 'bindings.base.check'

local C, check_self = ffi.C, check.ctype
local objects = {}

local MAX = 2 ^ 30
local OBJECTS, OBJECT = ffi.typeof 'struct objects *', ffi.typeof 'struct object'

--- A copy of an entry of the table.
---@class Object
---@field address integer64
---@field time number ns, as given to put()
---@field size integer64
---@field space integer
---@field tid integer
---@field stack integer
---@field kind integer

--- A table of objects.
---@class Objects
local Objects = {}

--- Adds an object.
---@param space integer the address space: a pid, 0 for the kernel, or any number that makes addresses unique
---@param address number|integer64 not 0
---@param size number
---@param time number ns
---@param tid integer
---@param stack integer `ev._stack`
---@param kind integer a value for the script's own use
---@return integer result 0: added; 1: replaced an object; -22: the address is 0; -28: the table is full
function Objects:put(space, address, size, time, tid, stack, kind)
  check_self(self, OBJECTS, 'objects:put')
  return C.objects_put(self, space, address, size, time, tid, stack, kind)
end

--- Removes an object.
---@param space integer
---@param address number|integer64
---@return Object? object nil if there is none
function Objects:take(space, address)
  check_self(self, OBJECTS, 'objects:take')
  local object = C.objects_take(self, space, address)
  return object ~= nil and OBJECT(object[0]) or nil
end

--- Adds an object, and returns the one that it replaced. Cheaper than take() and put(). An object that finds the table
--- full is only counted, in stats().
---@param space integer
---@param address number|integer64
---@param size number
---@param time number ns
---@param tid integer
---@param stack integer
---@param kind integer
---@return Object? object nil if there was none
function Objects:swap(space, address, size, time, tid, stack, kind)
  check_self(self, OBJECTS, 'objects:swap')
  local object = C.objects_swap(self, space, address, size, time, tid, stack, kind)
  return object ~= nil and OBJECT(object[0]) or nil
end

--- A cheaper put() for handlers that call it for every event. Its result is only counted, in stats().
---@param space integer
---@param address number|integer64
---@param size number
---@param time number ns
---@param tid integer
---@param stack integer
---@param kind integer
function Objects:put_later(space, address, size, time, tid, stack, kind)
  check_self(self, OBJECTS, 'objects:put_later')
  C.objects_put_later(self, space, address, size, time, tid, stack, kind)
end

--- A cheaper take() for handlers that do not need the object.
---@param space integer
---@param address number|integer64
function Objects:drop_later(space, address)
  check_self(self, OBJECTS, 'objects:drop_later')
  C.objects_drop_later(self, space, address)
end

--- Returns the results of the swap() and put_later() calls.
---@return integer replaced objects that replaced another
---@return integer refused objects dropped because the table was full
function Objects:stats()
  check_self(self, OBJECTS, 'objects:stats')
  local stats = ffi.new 'struct objects_stats'
  C.objects_read_stats(self, stats)
  return tonumber(stats.replaced), tonumber(stats.refused)
end

--- Returns the number of objects.
---@return integer
function Objects:count()
  check_self(self, OBJECTS, 'objects:count')
  return C.objects_count(self)
end

--- Calls each(object) for all objects, in no particular order. All calls get the same object: copy values to keep
--- them.
---@param each fun(object: Object)
function Objects:each(each)
  check_self(self, OBJECTS, 'objects:each')
  local at, copy = ffi.new 'uint32_t[1]', OBJECT()
  while true do
    local object = C.objects_next(self, at)
    if object == nil then return end
    ffi.copy(copy, object, ffi.sizeof(OBJECT))
    each(copy)
  end
end

ffi.metatype('struct objects', { __index = Objects })

--- Returns an empty table for at most `max` objects.
---@param max integer
---@return Objects
function objects.new(max)
  check.whole(max, 1, MAX, 'objects.new takes the maximum number of objects')
  return ffi.gc(check.allocated(C.objects_new(max), 'objects'), C.objects_free)
end

return objects
