-- SPDX-License-Identifier: GPL-2.0-only
--- Maps of loaded BPF objects. Keys and values follow their BTF types: integers are numbers, char arrays are
--- strings, structs are tables, arrays are tables from 0, per-CPU values are tables by CPU.
local ffi = require 'ffi'
local btf = require 'bindings.bpf.btf'
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'

local bpf_map = {}

-- enum bpf_map_type
local PERCPU_HASH, PERCPU_ARRAY, STACK_TRACE, LRU_PERCPU_HASH = 5, 6, 7, 10
local PERF_EVENT_ARRAY, RINGBUF = 4, 27
local IS_PERCPU = { [PERCPU_HASH] = true, [PERCPU_ARRAY] = true, [LRU_PERCPU_HASH] = true }
local IS_ARRAY = { [2] = true, [PERCPU_ARRAY] = true }

local ENOENT = 2
local SLACK = 8 -- extra bytes after a buffer: bit fields are read as whole words

---@class BpfMap
---@field name string
local Map = {}
Map.__index = Map

local function roundup(size) return math.ceil(size / 8) * 8 end

--- Whether a map holds records instead of entries.
---@param kind integer
function bpf_map.is_ring(kind) return kind == RINGBUF or kind == PERF_EVENT_ARRAY end

--- Opens a map of a loaded object.
---@param object BpfObject
---@param name string
---@param frames fun(addresses: ffi.cdata*[]): Frame[] symbolizes a kernel stack
---@return BpfMap
function bpf_map.new(object, name, frames)
  local lib, map = object.lib, object:find('map', name)
  local kind = lib.bpf_map__type(map)
  if bpf_map.is_ring(kind) then
    failure.raise("%s: map '%s' holds records, not entries; use events('%s')", object.name, name, name)
  end
  local key, value = lib.bpf_map__btf_key_type_id(map), lib.bpf_map__btf_value_type_id(map)
  local self = {
    name = ('%s: map %s'):format(object.name, name),
    lib = lib,
    fd = lib.bpf_map__fd(map),
    kind = kind,
    frames = frames,
    max_entries = lib.bpf_map__max_entries(map),
    key_codec = key > 0 and object.btf:codec(key) or btf.plain_codec(lib.bpf_map__key_size(map)),
    codec = value > 0 and object.btf:codec(value) or btf.plain_codec(lib.bpf_map__value_size(map)),
    nr_cpus = IS_PERCPU[kind] and lib.libbpf_num_possible_cpus() or 1,
  }
  self.value_size = IS_PERCPU[kind] and roundup(lib.bpf_map__value_size(map)) or lib.bpf_map__value_size(map)
  self.key = ffi.new('uint8_t[?]', lib.bpf_map__key_size(map) + SLACK)
  self.value = ffi.new('uint8_t[?]', self.value_size * self.nr_cpus + SLACK)
  return setmetatable(self, Map)
end

function Map:fail(what, code) failure.raise('%s: %s: %s', self.name, what, sys.strerror(code)) end

--- Encodes a value for C. An invalid value raises an error at the script's line.
local function encode(self, codec, buffer, size, value)
  ffi.fill(buffer, size)
  local ok, message = pcall(codec.write, buffer, value)
  if not ok then error(('%s: %s'):format(self.name, message), 4) end
end

local function put_key(self, key) encode(self, self.key_codec, self.key, ffi.sizeof(self.key), key) end

local function read_value(self)
  if not IS_PERCPU[self.kind] then return self.codec.read(self.value) end
  local values = {}
  for cpu = 0, self.nr_cpus - 1 do
    values[cpu] = self.codec.read(self.value + cpu * self.value_size)
  end
  return values
end

--- Looks up the key in self.key.
local function lookup(self)
  local code = -self.lib.bpf_map_lookup_elem(self.fd, self.key, self.value)
  if code == 0 then return read_value(self) end
  if code ~= ENOENT then self:fail('reading', code) end
end

--- Returns the value of a key, nil if there is none.
---@param key any
---@return any
function Map:get(key)
  put_key(self, key)
  return lookup(self)
end

--- Sets the value of a key. Per-CPU values are a table by CPU; the other CPUs' values become 0.
---@param key any
---@param value any
function Map:set(key, value)
  put_key(self, key)
  if IS_PERCPU[self.kind] then
    ffi.fill(self.value, ffi.sizeof(self.value))
    for cpu, one in pairs(value) do
      if type(cpu) ~= 'number' or cpu < 0 or cpu >= self.nr_cpus then
        error(('%s: no CPU %s'):format(self.name, tostring(cpu)), 2)
      end
      local ok, message = pcall(self.codec.write, self.value + cpu * self.value_size, one)
      if not ok then error(('%s: %s'):format(self.name, message), 2) end
    end
  else
    encode(self, self.codec, self.value, ffi.sizeof(self.value), value)
  end
  local code = -self.lib.bpf_map_update_elem(self.fd, self.key, self.value, 0)
  if code ~= 0 then self:fail('writing', code) end
end

--- Removes a key.
---@param key any
---@return boolean whether the key existed
function Map:delete(key)
  put_key(self, key)
  local code = -self.lib.bpf_map_delete_elem(self.fd, self.key)
  if code ~= 0 and code ~= ENOENT then self:fail('deleting', code) end
  return code == 0
end

--- Returns all keys, as bytes. If a key is removed meanwhile, the kernel may start over: so duplicates are
--- dropped, and the number of steps is limited to twice the size of the map.
local function keys(self)
  local size = ffi.sizeof(self.key) - SLACK
  local list, seen, key = {}, {}, nil
  for _ = 1, 2 * self.max_entries + 1 do
    local code = -self.lib.bpf_map_get_next_key(self.fd, key, self.key)
    if code == ENOENT then break end
    if code ~= 0 then self:fail('reading keys', code) end
    local bytes = ffi.string(self.key, size)
    if not seen[bytes] then
      seen[bytes] = true
      list[#list + 1] = bytes
    end
    key = ffi.new('uint8_t[?]', size, bytes)
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
      ffi.copy(self.key, list[i], #list[i])
      local value = lookup(self)
      if value ~= nil then
        ffi.copy(self.key, list[i], #list[i])
        return self.key_codec.read(self.key), value
      end
    end
  end
end

--- Removes all entries. Array entries become 0.
function Map:clear()
  for _, bytes in ipairs(keys(self)) do
    ffi.copy(self.key, bytes, #bytes)
    if IS_ARRAY[self.kind] then
      ffi.fill(self.value, ffi.sizeof(self.value))
      self.lib.bpf_map_update_elem(self.fd, self.key, self.value, 0)
    else
      self.lib.bpf_map_delete_elem(self.fd, self.key)
    end
  end
end

--- Returns the frames of a stack, innermost first; nil if there is none.
---@param id integer as returned by bpf_get_stackid()
---@return Frame[]?
function Map:stack(id)
  if self.kind ~= STACK_TRACE then failure.raise('%s: not a stack trace map', self.name) end
  ffi.cast('uint32_t *', self.key)[0] = id
  if self.lib.bpf_map_lookup_elem(self.fd, self.key, self.value) ~= 0 then return nil end
  local words, addresses = ffi.cast('uint64_t *', self.value), {}
  for i = 0, self.value_size / 8 - 1 do
    if words[i] == 0 then break end
    addresses[#addresses + 1] = words[i]
  end
  return self.frames(addresses)
end

return bpf_map
