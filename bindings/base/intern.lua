-- SPDX-License-Identifier: GPL-2.0-only
--- Small integers for keys of up to four parts (interning), which index arrays and sets of histograms
--- (native/intern.h). Equal keys get the same id. The first key gets 0, the next new one 1, and so on.
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

--- A number where that is exact, else the 64-bit value itself.
local function exact(value)
  local n = tonumber(value)
  return n <= 2 ^ 53 and n >= -2 ^ 53 and n or value
end

local DIRECT = 2 ^ 22 -- keys that are whole numbers below it, as pids are, are found without a hash

local function direct_ids()
  local memory = check.allocated(libc.calloc(DIRECT, ffi.sizeof 'int32_t'), 'keys')
  return ffi.gc(ffi.cast('int32_t *', memory), libc.free)
end

-- Keys of two numbers are found without a hash if they are in a cache, which has one place for each.
local RECENT = 4096
local recent_keys = ffi.typeof('struct { double a, b; int32_t next_id; }[$]', RECENT)

--- Appends one part to the pushed key. Each branch is a type, so a compiled caller has only its own.
local function push(t, k)
  local kind = type(k)
  if kind == 'number' then
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

-- One function per number of parts: varargs would keep the caller from being compiled.
local function id_function(t, arity, max, direct, recent)
  local commit = C.intern_commit
  if arity == 0 then return function() return commit(t) end end
  if arity == 1 then
    local number = C.intern_number
    return function(a)
      if type(a) ~= 'number' then
        push(t, a)
        return commit(t)
      end
      if a < 0 or a >= DIRECT or a ~= floor(a) then return number(t, a) end
      local next_id = direct[a]
      if next_id ~= 0 then return next_id - 1 end
      local id = number(t, a)
      if id ~= max then direct[a] = id + 1 end
      return id
    end
  end
  if arity == 2 then
    return function(a, b)
      if type(a) ~= 'number' or type(b) ~= 'number' then
        push(t, a)
        push(t, b)
        return commit(t)
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
      push(t, a)
      push(t, b)
      push(t, c)
      return commit(t)
    end
  end
  return function(a, b, c, d)
    push(t, a)
    push(t, b)
    push(t, c)
    push(t, d)
    return commit(t)
  end
end

--- A table of keys.
---@class Keys
---@field id fun(...): integer the id of a key; takes as many parts as a key has: numbers, integer64s, strings, nil
--- or booleans. It is a function, not a method
---@field max integer the id that all keys beyond the limit share
local Keys = {}
Keys.__index = Keys

--- A table of keys.
---@param parts integer number of parts of a key, 0 to 4
---@param max integer number of keys; all further keys get the id `max`
---@return Keys
function intern.new(parts, max)
  check.whole(parts, 0, tonumber(C.INTERN_PARTS), 'intern.new takes the parts of a key')
  check.whole(max, 1, MAX, 'intern.new takes the number of keys at most')
  local t = ffi.gc(check.allocated(C.intern_new(max), 'keys'), C.intern_free)
  local direct = parts == 1 and direct_ids() or nil
  local recent = parts == 2 and recent_keys() or nil
  local id = id_function(t, parts, max, direct, recent)
  return setmetatable({ _table = t, _direct = direct, _recent = recent, max = max, id = id }, Keys)
end

--- How many keys there are.
---@return integer
function Keys:count()
  check.self(self, Keys, 'keys:count')
  return C.intern_count(self._table)
end

--- How often the id `max` was given since the last clear().
---@return number
function Keys:overflow()
  check.self(self, Keys, 'keys:overflow')
  return tonumber(C.intern_overflow(self._table))
end

--- Forgets all keys. Ids start at 0 again.
function Keys:clear()
  check.self(self, Keys, 'keys:clear')
  local direct = self._direct
  for id = 0, direct and self:count() - 1 or -1 do
    local key = self:part(id, 1)
    if type(key) == 'number' and key >= 0 and key < DIRECT then direct[key] = 0 end
  end
  if self._recent then ffi.fill(self._recent, ffi.sizeof(self._recent)) end
  C.intern_clear(self._table)
end

local part = ffi.new 'struct intern_part'

--- A part of a key.
---@param id integer
---@param i integer number of the part, from 1
---@return number|string|integer64|nil part nil where there is none
function Keys:part(id, i)
  check.self(self, Keys, 'keys:part')
  check.is(id, 'number', 'keys:part takes the number of a key')
  check.is(i, 'number', 'keys:part takes the number of a part')
  if C.intern_part(self._table, id, i - 1, part) == 0 then return nil end
  if part.kind == C.INTERN_STRING then return ffi.string(part.bytes, part.size) end
  if part.kind == C.INTERN_DOUBLE then return part.d end
  if part.kind == C.INTERN_UINT then return exact(ffi.cast(uint64_t, part.i)) end
  return exact(part.i)
end

return intern
