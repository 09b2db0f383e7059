-- SPDX-License-Identifier: GPL-2.0-only
--- Maps of loaded BPF objects. Keys and values follow their BTF types: integers are numbers, char arrays are
--- strings, structs are tables, arrays are tables from 0, per-CPU values are tables by CPU.
local btf = require 'bindings.bpf.btf'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'

local C = ffi.C
local bpf_map = {}

local IS_PERCPU = {
  [C.BPF_MAP_TYPE_PERCPU_HASH] = true, [C.BPF_MAP_TYPE_PERCPU_ARRAY] = true, [C.BPF_MAP_TYPE_LRU_PERCPU_HASH] = true,
}
local IS_ARRAY = { [C.BPF_MAP_TYPE_ARRAY] = true, [C.BPF_MAP_TYPE_PERCPU_ARRAY] = true }

local BATCH = 4096 -- entries that take() gets at once
local SLACK = 8 -- extra bytes after a buffer, because bit fields are read as whole words

--- A map of a BPF object.
---@class BpfMap
local Map = {}
Map.__index = Map

local public -- creates the facade of a map

local function roundup(size) return math.ceil(size / 8) * 8 end

--- Returns whether a map contains records instead of entries.
---@param kind integer
function bpf_map.is_ring(kind) return kind == C.BPF_MAP_TYPE_RINGBUF or kind == C.BPF_MAP_TYPE_PERF_EVENT_ARRAY end

--- Opens a map of a loaded object.
---@param object BpfObject
---@param name string
---@param frames fun(addresses: ffi.cdata*[]): Frame[] symbolizes a kernel stack
---@return BpfMap
function bpf_map.new(object, name, frames)
  local lib, map = object.lib, object:find('map', name)
  local kind = lib.bpf_map__type(map)
  if bpf_map.is_ring(kind) then
    failure.raise("%s: map '%s' contains records, not entries; use events('%s')", object.name, name, name)
  end
  local key, value = lib.bpf_map__btf_key_type_id(map), lib.bpf_map__btf_value_type_id(map)
  local self = {
    _name = ('%s: map %s'):format(object.name, name),
    _lib = lib,
    _fd = lib.bpf_map__fd(map),
    _kind = kind,
    _frames = frames,
    _max_entries = lib.bpf_map__max_entries(map),
    _key_codec = key > 0 and object.btf:codec(key) or btf.plain_codec(lib.bpf_map__key_size(map)),
    _codec = value > 0 and object.btf:codec(value) or btf.plain_codec(lib.bpf_map__value_size(map)),
    _nr_cpus = IS_PERCPU[kind] and lib.libbpf_num_possible_cpus() or 1,
  }
  self._value_size = IS_PERCPU[kind] and roundup(lib.bpf_map__value_size(map)) or lib.bpf_map__value_size(map)
  self._key = ffi.new('uint8_t[?]', lib.bpf_map__key_size(map) + SLACK)
  self._value = ffi.new('uint8_t[?]', self._value_size * self._nr_cpus + SLACK)
  return public(setmetatable(self, Map))
end

local function fail(self, what, code) failure.raise('%s: %s: %s', self._name, what, sys.strerror(code)) end

--- Encodes a value for C. An invalid value raises an error at the script's line.
local function encode(self, codec, buffer, size, value)
  ffi.fill(buffer, size)
  local ok, message = pcall(codec.write, buffer, value)
  if not ok then error(('%s: %s'):format(self._name, message), 4) end
end

local function put_key(self, key) encode(self, self._key_codec, self._key, ffi.sizeof(self._key), key) end

local function read_value(self, bytes)
  if not IS_PERCPU[self._kind] then return self._codec.read(bytes) end
  local values = {}
  for cpu = 0, self._nr_cpus - 1 do
    values[cpu] = self._codec.read(bytes + cpu * self._value_size)
  end
  return values
end

--- Looks up the key in self._key.
local function lookup(self)
  local code = -self._lib.bpf_map_lookup_elem(self._fd, self._key, self._value)
  if code == 0 then return read_value(self, self._value) end
  if code ~= libc.ENOENT then fail(self, 'reading', code) end
end

--- Returns the value of a key.
---@param key any
---@return any value nil if the key does not exist
function Map:get(key)
  put_key(self, key)
  return lookup(self)
end

--- Sets the value of a key. Per-CPU values are a table by CPU; the other CPUs' values become 0.
---@param key any
---@param value any
function Map:set(key, value)
  put_key(self, key)
  if IS_PERCPU[self._kind] then
    ffi.fill(self._value, ffi.sizeof(self._value))
    for cpu, one in pairs(value) do
      if type(cpu) ~= 'number' or not (cpu >= 0 and cpu < self._nr_cpus and cpu == math.floor(cpu)) then
        error(('%s: no CPU %s'):format(self._name, tostring(cpu)), 2)
      end
      local ok, message = pcall(self._codec.write, self._value + cpu * self._value_size, one)
      if not ok then error(('%s: %s'):format(self._name, message), 2) end
    end
  else
    encode(self, self._codec, self._value, ffi.sizeof(self._value), value)
  end
  local code = -self._lib.bpf_map_update_elem(self._fd, self._key, self._value, 0)
  if code ~= 0 then fail(self, 'writing', code) end
end

--- Removes a key.
---@param key any
---@return boolean whether the key existed
function Map:delete(key)
  put_key(self, key)
  local code = -self._lib.bpf_map_delete_elem(self._fd, self._key)
  if code ~= 0 and code ~= libc.ENOENT then fail(self, 'deleting', code) end
  return code == 0
end

--- Returns all keys as bytes. If a key is removed meanwhile, the kernel may start over: therefore drops duplicates and
--- limits the number of steps to twice the size of the map.
local function keys(self)
  local size = ffi.sizeof(self._key) - SLACK
  local list, seen, previous, key = {}, {}, ffi.new('uint8_t[?]', size), nil
  for _ = 1, 2 * self._max_entries + 1 do
    local code = -self._lib.bpf_map_get_next_key(self._fd, key, self._key)
    if code == libc.ENOENT then break end
    if code ~= 0 then fail(self, 'reading keys', code) end
    local bytes = ffi.string(self._key, size)
    if not seen[bytes] then
      seen[bytes] = true
      list[#list + 1] = bytes
    end
    ffi.copy(previous, bytes, size)
    key = previous
  end
  return list
end

--- Iterates over the current keys and values: `for key, value in map:pairs() do`. Entries may be changed and
--- removed meanwhile.
---@return fun(): any, any
function Map:pairs()
  local list, i = keys(self), 0
  return function()
    while i < #list do
      i = i + 1
      ffi.copy(self._key, list[i], #list[i])
      local value = lookup(self)
      if value ~= nil then
        ffi.copy(self._key, list[i], #list[i])
        return self._key_codec.read(self._key), value
      end
    end
  end
end

--- Removes all entries of a hash and returns them, with few system calls. Needs kernel 5.6.
---@return { key: any, value: any }[] entries
function Map:take()
  local key_size, value_size = ffi.sizeof(self._key) - SLACK, self._value_size * self._nr_cpus
  local max = math.min(self._max_entries, BATCH)
  self._keys = self._keys or ffi.new('uint8_t[?]', max * key_size + SLACK)
  self._values = self._values or ffi.new('uint8_t[?]', max * value_size + SLACK)
  local key_bytes, value_bytes = self._keys, self._values
  local place, n, list, code = ffi.new 'uint64_t[1]', ffi.new 'uint32_t[1]', {}, nil
  repeat
    n[0] = max
    local after = code and place or nil
    code = -self._lib.bpf_map_lookup_and_delete_batch(self._fd, after, place, key_bytes, value_bytes, n, nil)
    if code ~= 0 and code ~= libc.ENOENT then fail(self, 'taking the entries', code) end
    for i = 0, n[0] - 1 do
      list[#list + 1] = {
        key = self._key_codec.read(key_bytes + i * key_size), value = read_value(self, value_bytes + i * value_size),
      }
    end
  until code == libc.ENOENT
  return list
end

--- Removes all entries. Array entries become 0.
function Map:clear()
  for _, bytes in ipairs(keys(self)) do
    ffi.copy(self._key, bytes, #bytes)
    if IS_ARRAY[self._kind] then
      ffi.fill(self._value, ffi.sizeof(self._value))
      self._lib.bpf_map_update_elem(self._fd, self._key, self._value, 0)
    else
      self._lib.bpf_map_delete_elem(self._fd, self._key)
    end
  end
end

--- Returns the frames of a stack in a stack trace map, innermost first.
---@param id integer as returned by bpf_get_stackid()
---@return Frame[]? frames nil if the id does not exist
function Map:stack(id)
  if self._kind ~= C.BPF_MAP_TYPE_STACK_TRACE then failure.raise('%s: not a stack trace map', self._name) end
  ffi.cast('uint32_t *', self._key)[0] = id
  if self._lib.bpf_map_lookup_elem(self._fd, self._key, self._value) ~= 0 then return nil end
  local words, addresses = ffi.cast('uint64_t *', self._value), {}
  for i = 0, self._value_size / 8 - 1 do
    if words[i] == 0 then break end
    addresses[#addresses + 1] = words[i]
  end
  return self._frames(addresses)
end

public = facade.class('map', Map, { 'clear', 'delete', 'get', 'pairs', 'set', 'stack', 'take' })

return bpf_map
