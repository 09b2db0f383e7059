-- SPDX-License-Identifier: GPL-2.0-only
--- Histograms of integers, usually ns. The error of a quantile is less than 1 % (native/hist.h).
---
---   local waits = hist.new()
---   waits:add(ns)
---   out:printf('%d waits, p99 %d ns\n', waits:stats().count, waits:quantile(0.99))
local ffi = require 'ffi'
local check = require 'bindings.base.check'
local countable = require 'bindings.base.countable'
local libc = require 'bindings.base.libc'

local C = ffi.C
local check_self, istype, type = check.ctype, ffi.istype, type
local hist = {}

local MAX = 2 ^ 28
local LARGEST, FULL, UINT64 = 0x7fffffffffffffffULL, 0xffffffffffffffffULL, ffi.typeof 'uint64_t'
local HIST, SET = ffi.typeof 'struct hist *', ffi.typeof 'struct hist_set *'

--- Converts a 64-bit value to a number if that is exact; otherwise to a signed one if it is one, which can be negated.
local function exact(value)
  local n = tonumber(value)
  return n < 2 ^ 53 and n or value <= LARGEST and ffi.cast('int64_t', value) or value
end

--- Converts a threshold for C. One beyond 2^63, such as math.huge, means no threshold.
local function c_threshold(threshold, name)
  if threshold == nil then return -1 end
  if type(threshold) ~= 'number' then
    error(('%s takes a threshold (a number), not %s'):format(name, check.shown(threshold)), 3)
  end
  return threshold < 2 ^ 63 and threshold or -1
end

local function check_index(i, method)
  if type(i) ~= 'number' and type(i) ~= 'cdata' then
    error(('%s takes a number, not %s'):format(method, check.shown(i)), 3)
  end
end

--- Whether a value has no place in an int64_t, such as a kernel address.
local function is_large(value)
  return type(value) == 'number' and value >= 2 ^ 63 or istype(UINT64, value) and value > LARGEST
end

--- Converts a value for C.
local function c_value(value, method)
  if type(value) == 'number' and value == value then return value < 2 ^ 64 and value or FULL end
  if type(value) == 'cdata' then return value end
  error(('%s takes a number, not %s'):format(method, check.shown(value)), 3)
end

--- A histogram.
---@class Hist
local Hist = {}

--- Adds a value.
---@param value number|integer64 truncated to an integer; a negative value counts as 0, and in `negative`; a number of
--- 2^64 or more counts as 2^64 - 1
function Hist:add(value)
  check_self(self, HIST, 'hist:add')
  value = c_value(value, 'hist:add')
  local ret = is_large(value) and C.hist_add_unsigned(self, value) or C.hist_add(self, value)
  if ret ~= 0 then error('out of memory for a histogram', 2) end
end

--- Adds all values of another histogram.
---@param from Hist
function Hist:merge(from)
  check_self(self, HIST, 'hist:merge')
  if not istype(HIST, from) then error(('hist:merge takes a histogram, not %s'):format(check.shown(from)), 2) end
  if C.hist_merge(self, from) ~= 0 then error('out of memory for a histogram', 2) end
end

--- Removes all values.
function Hist:clear()
  check_self(self, HIST, 'hist:clear')
  C.hist_clear(self)
end

--- Returns a quantile: the value that the fraction q of all values does not exceed.
---@param q number 0 to 1; 0.5 is the median
---@return number|integer64 value 0 if the histogram is empty
function Hist:quantile(q)
  check_self(self, HIST, 'hist:quantile')
  check.is(q, 'number', 'hist:quantile takes a fraction')
  return exact(C.hist_quantile(self, q))
end

--- Returns exact statistics. sum, min and max are integer64s if they exceed 2^53. `over` counts the values above the
--- threshold. `variance` is that of all values (their squared distances from the mean are divided by their number), and
--- `stddev` its root; both, and `avg`, are NaN without values. These and `sum` are NaN if the sum is beyond 64 bits.
---@return { count: number, sum: number, min: number, max: number, over: number, negative: number, avg: number,
--- variance: number, stddev: number }
function Hist:stats()
  check_self(self, HIST, 'hist:stats')
  local s = ffi.new 'struct hist_stats'
  C.hist_read(self, s)
  local variance = C.hist_variance(self)
  return {
    count = exact(s.count),
    sum = s.sum < FULL and exact(s.sum) or 0 / 0,
    min = exact(s.min),
    max = exact(s.max),
    over = exact(s.over),
    negative = exact(s.negative),
    avg = s.sum < FULL and tonumber(s.sum) / tonumber(s.count) or 0 / 0,
    variance = variance,
    stddev = math.sqrt(variance),
  }
end

--- Returns counts by power of two, from the first to the last that is not 0. Exponent e covers the values from 2^e to
--- 2^(e+1) - 1, 'zero' covers 0, and 'negative' the values below 0.
---@return { exponent: integer|'zero'|'negative', count: number }[]
function Hist:log2()
  check_self(self, HIST, 'hist:log2')
  local counts, first, last = ffi.new ('uint64_t[?]', C.HIST_LOG2_ROWS), 0, C.HIST_LOG2_ROWS - 1
  C.hist_log2(self, counts)
  while first <= last and counts[first] == 0 do first = first + 1 end
  while last > first and counts[last] == 0 do last = last - 1 end
  local rows = {}
  for i = first, last do
    local exponent = i == 0 and 'negative' or i == 1 and 'zero' or i - 2
    rows[#rows + 1] = { exponent = exponent, count = exact(counts[i]) }
  end
  return rows
end

ffi.metatype('struct hist', { __index = Hist })

local has_threshold = setmetatable({}, { __mode = 'k' })

countable.add_ctype(ffi.typeof 'struct hist', {
  count = function(self, terms)
    if #terms ~= 1 or not terms[1].value then return nil, 'it adds what is not a number' end
    if has_threshold[self] then return nil, 'the histogram has a threshold' end
    local set = hist.set(1)
    local function after()
      local new = set:get(0)
      if new then self:merge(new) end
      set:clear()
    end
    return { hist = { into = set, width = 1, at = 0, value = terms[1].value }, after = after }
  end,
})

--- A set of histograms, indexed by small integers such as ids of lib.intern. A histogram is allocated when its first
--- value is added.
---@class HistSet
local HistSet = {}

local set_of = setmetatable({}, { __mode = 'k' }) -- keeps the set as long as a histogram of it

--- Adds a value to histogram i.
---@param i integer from 0
---@param value number|integer64 as in Hist:add()
function HistSet:add(i, value)
  check_self(self, SET, 'hists:add')
  check_index(i, 'hists:add')
  value = c_value(value, 'hists:add')
  local ret = is_large(value) and C.hist_set_add_unsigned(self, i, value) or C.hist_set_add(self, i, value)
  if ret == -libc.EINVAL then error(('hists:add: no histogram %s in this set'):format(check.shown(i)), 2) end
  if ret ~= 0 then error('out of memory for a histogram', 2) end
end

--- Returns histogram i.
---@param i integer
---@return Hist? hist nil if no value was ever added to it
function HistSet:get(i)
  check_self(self, SET, 'hists:get')
  check_index(i, 'hists:get')
  local h = C.hist_set_get(self, i)
  if h == nil then return nil end
  set_of[h] = self
  return h
end

--- Removes the values of all histograms.
function HistSet:clear()
  check_self(self, SET, 'hists:clear')
  C.hist_set_clear(self)
end

ffi.metatype('struct hist_set', { __index = HistSet })

--- Returns a new histogram.
---@param threshold? number values above it are counted as `over`
---@return Hist
function hist.new(threshold)
  local new = check.allocated(C.hist_new(c_threshold(threshold, 'hist.new')), 'a histogram')
  if threshold then has_threshold[new] = true end
  return ffi.gc(new, C.hist_free)
end

--- Returns a set of n histograms.
---@param n integer from 0 to 2^28
---@param threshold? number as in hist.new()
---@return HistSet
function hist.set(n, threshold)
  check.whole(n, 0, MAX, 'hist.set takes the number of histograms')
  local new = check.allocated(C.hist_set_new(n, c_threshold(threshold, 'hist.set')), 'histograms')
  return ffi.gc(new, C.hist_set_free)
end

return hist
