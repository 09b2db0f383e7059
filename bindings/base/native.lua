-- SPDX-License-Identifier: GPL-2.0-only
--- The data structures of native/ as Lua objects that free themselves.
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local C = ffi.C
local type, istype, floor = type, ffi.istype, math.floor

local native = {}

local int64_t, uint64_t = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'

--- A number where that is exact, else the 64-bit value itself.
local function exact(value)
  local n = tonumber(value)
  return n <= 2 ^ 53 and n >= -2 ^ 53 and n or value
end

local function check(object, what)
  if object == nil then error('out of memory for ' .. what, 3) end
  return object
end

--- Histogram (native/hist.h).
---@class native.Hist
local hist = {}

--- A threshold beyond 2^63, such as math.huge for "none", has no integer.
local function limit_of(threshold) return threshold and threshold < 2 ^ 63 and threshold or -1 end

--- A histogram of integers, usually ns, whose quantiles are off by less than 1 %.
---@param threshold? number values strictly greater are counted as `over`
---@return native.Hist
function native.hist(threshold) return ffi.gc(check(C.hist_new(limit_of(threshold)), 'a histogram'), C.hist_free) end

---@param value number|ffi.cdata* integer; a negative one counts as 0 and as `negative`
function hist:add(value)
  if C.hist_add(self, value) ~= 0 then error('out of memory for a histogram', 2) end
end

---@param from native.Hist
function hist:merge(from)
  if C.hist_merge(self, from) ~= 0 then error('out of memory for a histogram', 2) end
end

function hist:clear() C.hist_clear(self) end

--- The value that the fraction q (0 to 1) of the values does not exceed.
---@param q number
---@return number|ffi.cdata*
function hist:quantile(q) return exact(C.hist_quantile(self, q)) end

--- Exact figures; sum, min and max are cdata where they exceed 2^53.
---@return { count: number, sum: number, min: number, max: number, over: number, negative: number }
function hist:stats()
  local s = ffi.new 'struct hist_stats'
  C.hist_read(self, s)
  return {
    count = exact(s.count),
    sum = exact(s.sum),
    min = exact(s.min),
    max = exact(s.max),
    over = exact(s.over),
    negative = exact(s.negative),
  }
end

--- Counts by power of two, from the first to the last that is not 0. exponent e stands for the
--- values from 2^e below 2^(e+1), 'zero' for 0 and 'negative' for those below.
---@return { exponent: integer|'zero'|'negative', count: number }[]
function hist:log2()
  local counts = ffi.new('uint64_t[?]', C.HIST_LOG2_ROWS)
  C.hist_log2(self, counts)
  local first, last = 0, C.HIST_LOG2_ROWS - 1
  while first <= last and counts[first] == 0 do first = first + 1 end
  while last > first and counts[last] == 0 do last = last - 1 end
  local rows = {}
  for i = first, last do
    local exponent = i == 0 and 'negative' or i == 1 and 'zero' or i - 2
    rows[#rows + 1] = { exponent = exponent, count = exact(counts[i]) }
  end
  return rows
end

ffi.metatype('struct hist', { __index = hist })

--- Histograms by id (struct hist_set).
---@class native.Hists
local hists = {}

--- Histograms for the ids of a native.Keys with max < n, each allocated when first added to.
---@param n integer
---@param threshold? number as in native.hist
---@return native.Hists
function native.hists(n, threshold)
  return ffi.gc(check(C.hist_set_new(n, limit_of(threshold)), 'histograms'), C.hist_set_free)
end

---@param id integer
---@param value number|ffi.cdata* as in native.Hist
function hists:add(id, value)
  if C.hist_set_add(self, id, value) ~= 0 then error('out of memory for a histogram', 2) end
end

--- Adds n values, each to the id beside it.
---@param ids ffi.cdata* uint32_t *
---@param values ffi.cdata* double *
---@param stride integer bytes from one to the next, in both columns
function hists:add_column(ids, values, stride, n)
  if C.hist_set_add_column(self, ids, values, stride, n) ~= 0 then error('out of memory for a histogram', 2) end
end

--- Valid as long as the set.
---@param id integer
---@return native.Hist? hist nil: nothing was ever added
function hists:get(id)
  local h = C.hist_set_get(self, id)
  return h ~= nil and h or nil
end

function hists:clear() C.hist_set_clear(self) end

ffi.metatype('struct hist_set', { __index = hists })

local function array(kind, n)
  local memory = check(libc.calloc(n, ffi.sizeof(kind)), 'an array')
  return ffi.gc(ffi.cast(kind .. ' *', memory), libc.free)
end

local DIRECT = 2 ^ 22 -- keys that are whole numbers below it, as pids are, are found without a hash

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
local function id_function(t, arity, max, direct)
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
      push(t, a)
      push(t, b)
      return commit(t)
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

--- An array of n zeros, for what belongs to the ids of a native.Keys with max < n. Unlike a Lua table
--- it has no new entries, hence no second path through compiled code, and costs no memory where it is
--- not used. Index it from 0, with such ids only: nothing checks.
---@param n integer
---@return ffi.cdata* numbers
function native.numbers(n) return array('double', n) end

--- Makes locked accesses across cache lines from now on, in a thread (runtime/os/splitlock.h).
---@return boolean ok false: not on this processor
function native.make_split_locks() return C.splitlock_start() == 0 end

--- Objects that exist, by address (native/objects.h).
---@class native.Objects
local objects = {}

--- A table of at most max objects.
---@param max integer
---@return native.Objects
function native.objects(max) return ffi.gc(check(C.objects_new(max), 'objects'), C.objects_free) end

--- 0: new; 1: in the place of one that was there; -22: address 0 is no object; -28: no room.
---@param space integer process; 0: the kernel
---@param address number|ffi.cdata*
---@return integer
function objects:put(space, address, size, time, tid, stack, kind)
  return C.objects_put(self, space, address, size, time, tid, stack, kind)
end

--- Removes an object.
---@return ffi.cdata*? object as it was, valid until the next call; nil: there is none
function objects:take(space, address)
  local object = C.objects_take(self, space, address)
  return object ~= nil and object or nil
end

--- put() and take() for those who call them at every event: cheaper, but what they come to is known only
--- to stats().
function objects:put_later(space, address, size, time, tid, stack, kind)
  C.objects_put_later(self, space, address, size, time, tid, stack, kind)
end

function objects:drop_later(space, address) C.objects_drop_later(self, space, address) end

--- Of put_later(): how many took the place of one that was there, and for how many there was no room.
---@return integer replaced, integer refused
function objects:stats()
  local stats = ffi.new 'struct objects_stats'
  C.objects_read_stats(self, stats)
  return tonumber(stats.replaced), tonumber(stats.refused)
end

---@return integer
function objects:count() return C.objects_count(self) end

--- Calls each(object) for all, in no order; it has address, time, size, space, tid, stack, kind.
---@param each fun(object: ffi.cdata*)
function objects:each(each)
  local at = ffi.new 'uint32_t[1]'
  while true do
    local object = C.objects_next(self, at)
    if object == nil then return end
    each(object)
  end
end

ffi.metatype('struct objects', { __index = objects })

--- Table of keys (native/intern.h).
---@class native.Keys
---@field id fun(...): integer takes as many keys as the table has parts; no self
---@field max integer the id of the overflow bucket
local keys = {}
keys.__index = keys

--- Maps tuples of numbers, 64-bit integers and strings to 0, 1, 2... in order of appearance.
---@param arity integer parts of a key, 0 to 4
---@param max integer keys; every further one gets the id max
---@return native.Keys
function native.keys(arity, max)
  if arity < 0 or arity > C.INTERN_PARTS then error('a key has at most 4 parts', 2) end
  local t = ffi.gc(check(C.intern_new(max), 'keys'), C.intern_free)
  local direct = arity == 1 and array('int32_t', DIRECT) or nil
  return setmetatable({ _table = t, _direct = direct, max = max, id = id_function(t, arity, max, direct) }, keys)
end

---@return integer
function keys:count() return C.intern_count(self._table) end

--- How often the overflow bucket was returned since the last clear.
---@return number
function keys:overflow() return tonumber(C.intern_overflow(self._table)) end

function keys:clear()
  local direct = self._direct
  for id = 0, direct and self:count() - 1 or -1 do
    local key = self:part(id, 1)
    if type(key) == 'number' and key >= 0 and key < DIRECT then direct[key] = 0 end
  end
  C.intern_clear(self._table)
end

local part = ffi.new 'struct intern_part'

--- Part number i (from 1) of a key; nil if there is none.
---@param id integer
---@param i integer
---@return number|string|ffi.cdata*|nil
function keys:part(id, i)
  if C.intern_part(self._table, id, i - 1, part) == 0 then return nil end
  if part.kind == C.INTERN_STRING then return ffi.string(part.bytes, part.size) end
  if part.kind == C.INTERN_DOUBLE then return part.d end
  if part.kind == C.INTERN_UINT then return exact(ffi.cast(uint64_t, part.i)) end
  return exact(part.i)
end

return native
