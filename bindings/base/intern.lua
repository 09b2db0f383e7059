-- SPDX-License-Identifier: GPL-2.0-only
--- Small integer ids for keys of up to four parts (interning). Use them to index arrays and sets of histograms. Equal
--- keys get the same id. New keys are numbered from 0. See native/intern.h.
---
---   local keys, bytes = intern.new(2, MAX_KEYS), array.new(MAX_KEYS + 1)
---   local id = keys.id(ev.pid, ev.comm)
---   bytes[id] = bytes[id] + ev.bytes_alloc
local bit = require 'bit'
local check = require 'bindings.base.check'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'

local C = ffi.C
local type, istype, floor, band = type, ffi.istype, math.floor, bit.band
local int64_t, uint64_t = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'
local intern = {}

local MAX = 2 ^ 30 -- keys

--- Converts a 64-bit value to a number if that is exact; otherwise returns it unchanged.
local function exact(value)
  local n = tonumber(value)
  return n < 2 ^ 53 and n > -2 ^ 53 and n or value
end

local DIRECT = 2 ^ 22 -- integer keys below it, such as pids, index an array instead of being hashed

local function direct_ids()
  local memory = check.allocated(libc.calloc(DIRECT, ffi.sizeof 'int32_t'), 'keys')
  return ffi.gc(ffi.cast('int32_t *', memory), libc.free)
end

-- A direct-mapped cache of keys of two or three numbers.
local RECENT = 4096
local recent_keys = ffi.typeof('struct { double a, b, c; int32_t next_id; }[$]', RECENT)

--- Appends one part to the key. There is one branch per type, so a compiled caller contains only its own.
local function push(t, k)
  local kind = type(k)
  if kind == 'number' then
    check.exact_key(k, 4)
    C.intern_push_number(t, k)
  elseif kind == 'string' then
    C.intern_push_bytes(t, k, #k)
  elseif kind == 'cdata' and istype(int64_t, k) then
    C.intern_push_int(t, k)
  elseif kind == 'cdata' and istype(uint64_t, k) then
    C.intern_push_uint(t, k)
  elseif kind == 'nil' then
    C.intern_push_bytes(t, 'nil', 3)
  elseif kind == 'boolean' then
    C.intern_push_bytes(t, k and 'true' or 'false', k and 4 or 5)
  else
    C.intern_cancel(t)
    error(('a %s cannot be a key: use a number or a string'):format(kind), 4)
  end
end

--- Returns the function for keys of one part: ids of small numbers are found without a call.
local function id_of_one(t, max, direct)
  local commit, number = C.intern_commit, C.intern_number
  return function(a)
    if type(a) ~= 'number' then
      push(t, a)
      return (commit(t))
    end
    if a < 0 or a >= DIRECT or a ~= floor(a) then
      check.exact_key(a, 3)
      return (number(t, a)) -- no call in tail position, see bindings/view/views.lua
    end
    local next_id = direct[a]
    if next_id ~= 0 then return next_id - 1 end
    local id = number(t, a)
    if id ~= max then direct[a] = id + 1 end
    return id
  end
end

-- One function per number of parts, because LuaJIT does not compile callers of varargs.
local function id_function(t, arity, max, direct, recent)
  local commit = C.intern_commit
  if arity == 0 then return function() return (commit(t)) end end
  if arity == 1 then return id_of_one(t, max, direct) end
  if arity == 2 then
    return function(a, b)
      if type(a) ~= 'number' or type(b) ~= 'number' then
        push(t, a)
        push(t, b)
        return (commit(t))
      end
      local found = recent[band(a * 31 + b, RECENT - 1)]
      if found.next_id ~= 0 and found.a == a and found.b == b then return found.next_id - 1 end
      push(t, a)
      push(t, b)
      local id = commit(t)
      if id ~= max then found.a, found.b, found.next_id = a, b, id + 1 end
      return id
    end
  end
  if arity == 3 then
    return function(a, b, c)
      if type(a) ~= 'number' or type(b) ~= 'number' or type(c) ~= 'number' then
        push(t, a)
        push(t, b)
        push(t, c)
        return (commit(t))
      end
      local found = recent[band(a * 961 + b * 31 + c, RECENT - 1)]
      if found.next_id ~= 0 and found.a == a and found.b == b and found.c == c then return found.next_id - 1 end
      push(t, a)
      push(t, b)
      push(t, c)
      local id = commit(t)
      if id ~= max then found.a, found.b, found.c, found.next_id = a, b, c, id + 1 end
      return id
    end
  end
  return function(a, b, c, d)
    push(t, a)
    push(t, b)
    push(t, c)
    push(t, d)
    return (commit(t))
  end
end

--- A table of keys.
---@class Keys
---@field id fun(...): integer returns the id of a key, given all its parts: numbers, integer64s, strings, booleans
--- or nil. It is a function, not a method
---@field max integer the common id of all keys beyond the limit
local Keys = {}
Keys.__index = Keys

local inner = setmetatable({}, { __mode = 'k' }) -- the private part of keys: scripts must not reach the pointers

local function checked(self, method) return check.inner(inner, self, method) end

--- Returns an empty table of keys.
---@param parts integer number of parts of a key, 0 to 4
---@param max integer maximum number of keys; all further keys get the id `max`
---@return Keys
function intern.new(parts, max)
  check.whole(parts, 0, tonumber(C.INTERN_PARTS), 'intern.new takes the number of parts')
  check.whole(max, 1, MAX, 'intern.new takes the maximum number of keys')
  local t = ffi.gc(check.allocated(C.intern_new(max), 'keys'), C.intern_free)
  local direct = parts == 1 and direct_ids() or nil
  local recent = (parts == 2 or parts == 3) and recent_keys() or nil
  local new = setmetatable({ max = max, id = id_function(t, parts, max, direct, recent) }, Keys)
  inner[new] = { table = t, direct = direct, recent = recent }
  return new
end

--- Returns the number of keys.
---@return integer
function Keys:count()
  return C.intern_count(checked(self, 'keys:count').table)
end

--- Returns how many times id() returned `max` since the last clear().
---@return number
function Keys:overflow()
  return tonumber(C.intern_overflow(checked(self, 'keys:overflow').table))
end

--- Counts uses of the id `max` for keys that were counted elsewhere.
---@package
---@param keys Keys
---@param uses number
function intern.add_overflow(keys, uses) C.intern_add_overflow(checked(keys, 'intern.add_overflow').table, uses) end

--- Removes all keys. Ids start at 0 again.
function Keys:clear()
  local found = checked(self, 'keys:clear')
  local direct = found.direct
  for id = 0, direct and Keys.count(self) - 1 or -1 do
    local key = Keys.part(self, id, 1)
    if type(key) == 'number' and key >= 0 and key < DIRECT then direct[key] = 0 end
  end
  if found.recent then ffi.fill(found.recent, ffi.sizeof(found.recent)) end
  C.intern_clear(found.table)
end

local part = ffi.new 'struct intern_part'

--- Returns a part of a key.
---@param id integer
---@param i integer index of the part, from 1
---@return number|string|integer64|nil part nil if the key or part does not exist
function Keys:part(id, i)
  local found = checked(self, 'keys:part')
  check.is(id, 'number', 'keys:part takes the id of a key')
  check.is(i, 'number', 'keys:part takes the index of a part')
  if C.intern_part(found.table, id, i - 1, part) == 0 then return nil end
  if part.kind == C.INTERN_STRING then return ffi.string(part.bytes, part.size) end
  if part.kind == C.INTERN_DOUBLE then return part.d end
  if part.kind == C.INTERN_UINT then return exact(ffi.cast(uint64_t, part.i)) end
  return exact(part.i)
end

return intern
