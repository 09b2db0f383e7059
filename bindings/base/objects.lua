-- SPDX-License-Identifier: GPL-2.0-only
--- Objects that exist at the moment, such as allocations or requests, by their address (native/objects.h).
---
---   local live = objects.new(2 ^ 20)
---   live:put(0, ev.ptr, ev.bytes_alloc, ev._time, ev._tid, ev._stack, 0) -- it was allocated
---   local object = live:take(0, ev.ptr)                                  -- it was freed
---   local age = object and ev._time - object.time
local ffi = require 'ffi'
local check = require 'bindings.base.check'

local C = ffi.C
local istype = ffi.istype
local objects = {}

local MAX = 2 ^ 30
local OBJECTS, OBJECT = ffi.typeof 'struct objects *', ffi.typeof 'struct object'

local function own(self, method)
  if not istype(OBJECTS, self) then
    error(('%s is a method: call it with a colon, not with %s'):format(method, check.shown(self)), 3)
  end
end

--- A copy of what is known of an object.
---@class Object
---@field address integer64
---@field time number ns, when it was put
---@field size integer64
---@field space integer
---@field tid integer
---@field stack integer
---@field kind integer

--- A table of objects.
---@class Objects
local Objects = {}

--- Adds an object.
---@param space integer the process whose address it is, 0 for the kernel, or whatever else makes addresses unique
---@param address number|integer64 not 0
---@param size number
---@param time number ns
---@param tid integer
---@param stack integer `ev._stack`
---@param kind integer a number of the script's own
---@return integer result 0: it is new; 1: it has replaced an object; -22: the address is 0; -28: there is no room
function Objects:put(space, address, size, time, tid, stack, kind)
  own(self, 'objects:put')
  return C.objects_put(self, space, address, size, time, tid, stack, kind)
end

--- Removes an object.
---@param space integer
---@param address number|integer64
---@return Object? object nil: there was none
function Objects:take(space, address)
  own(self, 'objects:take')
  local object = C.objects_take(self, space, address)
  return object ~= nil and OBJECT(object[0]) or nil
end

--- A cheaper put() for handlers that call it at every event. Only stats() tells what it came to.
---@param space integer
---@param address number|integer64
---@param size number
---@param time number ns
---@param tid integer
---@param stack integer
---@param kind integer
function Objects:put_later(space, address, size, time, tid, stack, kind)
  own(self, 'objects:put_later')
  C.objects_put_later(self, space, address, size, time, tid, stack, kind)
end

--- A cheaper take() for handlers that need not know what was there.
---@param space integer
---@param address number|integer64
function Objects:drop_later(space, address)
  own(self, 'objects:drop_later')
  C.objects_drop_later(self, space, address)
end

--- What the calls of put_later() came to.
---@return integer replaced objects that took the place of another
---@return integer refused objects for which there was no room
function Objects:stats()
  own(self, 'objects:stats')
  local stats = ffi.new 'struct objects_stats'
  C.objects_read_stats(self, stats)
  return tonumber(stats.replaced), tonumber(stats.refused)
end

--- How many objects there are.
---@return integer
function Objects:count()
  own(self, 'objects:count')
  return C.objects_count(self)
end

--- Calls each(object) for all objects, in no order. The same table is used for all calls: copy what should last.
---@param each fun(object: Object)
function Objects:each(each)
  own(self, 'objects:each')
  local at, copy = ffi.new 'uint32_t[1]', OBJECT()
  while true do
    local object = C.objects_next(self, at)
    if object == nil then return end
    ffi.copy(copy, object, ffi.sizeof(OBJECT))
    each(copy)
  end
end

ffi.metatype('struct objects', { __index = Objects })

--- A table of at most `max` objects.
---@param max integer
---@return Objects
function objects.new(max)
  check.whole(max, 1, MAX, 'objects.new takes the number of objects at most')
  return ffi.gc(check.allocated(C.objects_new(max), 'objects'), C.objects_free)
end

return objects
