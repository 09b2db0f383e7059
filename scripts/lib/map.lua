-- SPDX-License-Identifier: GPL-2.0-only
--- Maps with keys that may be 64-bit integers, such as addresses, which a plain table cannot have.
---
---   local map = require 'lib.map'
---   local calls = map.new()
---   return { ['raw_syscalls:sys_enter'] = function(ev) calls:add(ev:u64 'id') end,
---     stop = function() calls:each(function(id, n) out:print(id, n) end) end }
---
--- A key may have several parts:
---
---   local open = map.new(2)
---   open:set(ev._pid, ev.fd, ev._time)
---   local time = open:take(ev._pid, ev.fd)
---
--- Equal integers are the same key, whatever their types. A map grows with its keys, like a table: take() or clear()
--- what is no longer needed, or use lib.counter, which is bounded.
local bit = require 'bit'
local check = require 'bindings.base.check'
local countable = require 'bindings.base.countable'
local sorted = require 'lib.sorted'

local map = {}

local band, rshift, lshift, tonumber, type = bit.band, bit.rshift, bit.lshift, tonumber, type
local EXACT = 2 ^ 53

local MAX_PARTS = 4

--- A map. A key is a number, an integer64, a string or a boolean, or several of these: then all parts stand in the
--- place of `key`.
---@class Map
local Map = {}
Map.__index = Map

countable.add(Map, { refuse = 'a map may have any number of keys; lib.counter has a limit' })

--- The methods of maps with several parts, by their number. Such a map has an inner map for each first part. They are
--- generated, because LuaJIT does not compile varargs.
local NESTED = [[
local new = ...
local Nested = {}
Nested.__index = Nested
local function inner_of(self, first)
  local inner = self._outer:get(first)
  if not inner then
    inner = new(PARTS)
    self._outer:set(first, inner)
  end
  return inner
end
function Nested:get(first, REST)
  local inner = self._outer:get(first)
  if inner then return inner:get(REST) end
end
function Nested:set(first, REST, value)
  local inner = inner_of(self, first)
  local before = inner:count()
  inner:set(REST, value)
  self._n = self._n + inner:count() - before
  if inner:count() == 0 then self._outer:take(first) end
end
function Nested:take(first, REST)
  local inner = self._outer:get(first)
  if not inner then return end
  local value = inner:take(REST)
  if value ~= nil then self._n = self._n - 1 end
  if inner:count() == 0 then self._outer:take(first) end
  return value
end
function Nested:add(first, REST, n)
  local inner = inner_of(self, first)
  local before = inner:count()
  local sum = inner:add(REST, n)
  self._n = self._n + inner:count() - before
  return sum
end
function Nested:count() return self._n end
function Nested:clear()
  self._n = 0
  self._outer:clear()
end
function Nested:each(each)
  self._outer:each(function(first, inner)
    inner:each(function(REST, value) each(first, REST, value) end)
  end)
end
return Nested]]

local nested = {} -- methods by number of parts

--- Returns an empty map.
---@param parts? integer parts of a key, at most 4; default: 1
---@return Map
function map.new(parts)
  if parts == nil or parts == 1 then return setmetatable({ _n = 0, _plain = {}, _wide = {} }, Map) end
  check.whole(parts, 1, MAX_PARTS, 'map.new takes the number of parts of a key')
  if not nested[parts] then
    local names = {}
    for i = 2, parts do names[i - 1] = 'part' .. i end
    local source = NESTED:gsub('%u%u%u%u+', { REST = table.concat(names, ', '), PARTS = parts - 1 })
    nested[parts] = assert(loadstring(source, '=map'))(map.new)
  end
  return setmetatable({ _n = 0, _outer = map.new() }, nested[parts])
end

--- Returns the table that holds a key, and the key in it. Integers that a number cannot hold are split: the upper half
--- selects one of a few tables.
local function place(self, key)
  if type(key) ~= 'cdata' then
    if key == nil then error('nil cannot be the key of a map', 3) end
    if type(key) == 'number' then check.exact_key(key, 3) end
    return self._plain, key
  end
  local n = tonumber(key)
  if not n then error(('%s cannot be the key of a map'):format(check.shown(key)), 3) end
  if n < EXACT and n > -EXACT then return self._plain, n end
  local high = tonumber(band(rshift(key, 32), 0xffffffff))
  local low, wide = self._wide[high], tonumber(band(key, 0xffffffff))
  if not low then
    low = {}
    self._wide[high] = low
  end
  return low, wide
end

--- Returns the value of a key.
---@param key any
---@return any value nil if there is none
function Map:get(key)
  local t, k = place(self, key)
  return t[k]
end

--- Sets the value of a key.
---@param key any
---@param value any nil removes the key
function Map:set(key, value)
  local t, k = place(self, key)
  local old = t[k]
  t[k] = value
  if old == nil then
    if value ~= nil then self._n = self._n + 1 end
  elseif value == nil then
    self._n = self._n - 1
  end
end

--- Removes a key.
---@param key any
---@return any value that it had; nil if there was none
function Map:take(key)
  local t, k = place(self, key)
  local old = t[k]
  if old ~= nil then
    t[k] = nil
    self._n = self._n - 1
  end
  return old
end

--- Adds to the number of a key, which is 0 if there is none.
---@param key any
---@param n? number default: 1
---@return number sum
function Map:add(key, n)
  local t, k = place(self, key)
  local old = t[k]
  if old == nil then
    self._n = self._n + 1
    old = 0
  end
  local sum = old + (n or 1)
  t[k] = sum
  return sum
end

--- Returns the number of keys.
---@return integer
function Map:count() return self._n end

--- Removes all keys.
function Map:clear() self._n, self._plain, self._wide = 0, {}, {} end

--- Calls each(key, value) for all keys: numbers and strings in ascending order, then integer64s.
---@param each fun(key: any, value: any)
function Map:each(each)
  local keys = {}
  for key in pairs(self._plain) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == 'boolean' then return b and not a end
    return a < b
  end)
  for _, key in ipairs(keys) do each(key, self._plain[key]) end
  for _, high in ipairs(sorted.keys(self._wide)) do
    local values = self._wide[high]
    for _, low in ipairs(sorted.keys(values)) do each(lshift(high + 0ULL, 32) + low, values[low]) end
  end
end

-- Another argument is a part of a key, which the script has forgotten to ask for.
local function refuse(method)
  error(("map:%s got an argument too many; a map whose keys have two parts is map.new(2)"):format(method), 3)
end
for name, method in pairs { get = Map.get, take = Map.take } do
  Map[name] = function(self, key, surplus)
    if surplus ~= nil then refuse(name) end
    return method(self, key)
  end
end
for name, method in pairs { set = Map.set, add = Map.add } do
  Map[name] = function(self, key, value, surplus)
    if surplus ~= nil then refuse(name) end
    return method(self, key, value)
  end
end

return map
