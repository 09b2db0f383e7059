-- SPDX-License-Identifier: GPL-2.0-only
--- Objects that exist, such as allocations or requests, by their address (native/objects.h).
---
---   local live = objects.new(2 ^ 20)
---   live:put(0, ev.ptr, ev.bytes_alloc, ev._time, ev._tid, ev._stack, 0) -- allocated
---   local object = live:take(0, ev.ptr)                                   -- freed: how old was it?
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
---@field time number when it came into being
---@field size integer64
---@field space integer
---@field tid integer
---@field stack integer
---@field kind integer

--- A table of objects.
---@class Objects
local Objects = {}

--- Adds an object.
---@param space integer the process whose address it is; 0: the kernel, or whatever else tells addresses apart
---@param address number|integer64
---@param size number
---@param time number ns
---@param tid integer
---@param stack integer `ev._stack`
---@param kind integer the script's own
---@return integer result 0: new; 1: in the place of one that was there; -22: address 0 is no object; -28: no room
function Objects:put(space, address, size, time, tid, stack, kind)
  own(self, 'objects:put')
  return C.objects_put(self, space, address, size, time, tid, stack, kind)
end

--- Removes an object.
---@param space integer
---@param address number|integer64
---@return Object? object as it was; nil: there is none
function Objects:take(space, address)
  own(self, 'objects:take')
  local object = C.objects_take(self, space, address)
  return object ~= nil and OBJECT(object[0]) or nil
end

--- put() for those who call it at every event: cheaper, but only stats() tells what it came to.
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

--- take() in the same way, for those who need not know what was there.
---@param space integer
---@param address number|integer64
function Objects:drop_later(space, address)
  own(self, 'objects:drop_later')
  C.objects_drop_later(self, space, address)
end

--- What became of put_later().
---@return integer replaced that took the place of an object
---@return integer refused for which there was no room
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

--- Calls each(object) for all, in no order. The object is the same table entry at each call: copy what is to last.
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
