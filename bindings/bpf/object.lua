-- SPDX-License-Identifier: GPL-2.0-only
--- BPF object: opens an object file, sets constants, loads the programs and accesses global variables.
local ffi = require 'ffi'
local btf = require 'bindings.bpf.btf'
local check = require 'bindings.base.check'
local failure = require 'bindings.base.failure'
local libbpf = require 'bindings.bpf.libbpf'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'
local sys = require 'bindings.base.sys'

local C = ffi.C

---@class BpfObject
---@field lib ffi.namespace* libbpf
---@field name string for messages
---@field source? { text: string, first: integer } source text and its first line number
---@field object ffi.cdata* struct bpf_object *
---@field btf Btf
---@field programs table<string, ffi.cdata*>
---@field maps table<string, ffi.cdata*>
---@field is_loaded? boolean
---@field perf_links BpfLink[] links to perf events of CPUs
---@field memory table<string, ffi.cdata*> sections mapped after loading
local Object = {}
Object.__index = Object

--- Opens an object file without loading it.
---@param name string for messages
---@param bytes string
---@param source? { text: string, first: integer }
---@return BpfObject
function Object.open(name, bytes, source)
  local object, programs, maps = libbpf.parse(name, bytes)
  local lib = libbpf.open()
  local types = lib.bpf_object__btf(object)
  if types == nil then failure.raise("%s: has no BTF: compile it with 'clang -g'", name) end
  local size = ffi.new 'uint32_t[1]'
  local data = lib.btf__raw_data(types, size)
  local copy, message = btf.copy(data, size[0])
  if not copy then failure.raise('%s: cannot read its BTF: %s', name, message) end
  return setmetatable({
    lib = lib, name = name, source = source, object = object, btf = copy,
    programs = programs, maps = maps, memory = {}, perf_links = {},
  }, Object)
end

--- Returns a program or map by name.
---@param what 'program'|'map'
---@param name string
function Object:find(what, name)
  local all = what == 'map' and self.maps or self.programs
  if all[name] then return all[name] end
  failure.raise("%s: no %s '%s'%s", self.name, what, tostring(name), nearest.hint(tostring(name), nearest.keys(all)))
end

--- Returns the memory of a section's variables, nil if the object has no such section.
local function section_memory(self, section)
  if self.memory[section] then return self.memory[section] end
  for name, map in pairs(self.maps) do
    if name:sub(-#section) == section and self.lib.bpf_map__is_internal(map) then
      local memory
      if self.is_loaded then
        -- libbpf maps the variables only for skeletons.
        memory = libc.mmap(nil, self.lib.bpf_map__value_size(map), libc.PROT_READ + libc.PROT_WRITE, libc.MAP_SHARED,
          self.lib.bpf_map__fd(map), 0)
        if ffi.cast('intptr_t', memory) == -1 then
          failure.raise('%s: cannot map %s: %s', self.name, section, sys.strerror(ffi.errno()))
        end
        self.memory[section] = ffi.cast('uint8_t *', memory)
      else
        memory = self.lib.bpf_map__initial_value(map, ffi.new 'size_t[1]') -- older versions always write the size
      end
      return memory ~= nil and ffi.cast('uint8_t *', memory) or nil
    end
  end
end

--- Finds a global variable.
---@param name string
---@param sections string[]
---@return ffi.cdata* memory uint8_t *
---@return Codec codec
function Object:variable(name, sections)
  local known = {}
  for _, section in ipairs(sections) do
    local memory = section_memory(self, section)
    for variable, place in pairs(memory and self.btf:variables(section) or {}) do
      if variable == name then return memory + place.offset, self.btf:codec(place.type) end
      known[variable] = true
    end
  end
  failure.raise("%s: no variable '%s' in %s%s", self.name, tostring(name), table.concat(sections, ' or '),
    nearest.hint(tostring(name), nearest.keys(known)))
end

--- Sets `const volatile` variables, which the verifier treats as constants. Must be called before load().
---@param values table<string, any>
function Object:set_constants(values)
  for name, value in pairs(values) do
    local memory, codec = self:variable(name, { '.rodata' })
    local ok, message = pcall(codec.write, memory, value)
    if not ok then failure.raise('%s: constant %s: %s', self.name, name, message) end
  end
end

--- Sets the maximum numbers of entries of maps. Must be called before load().
---@param entries table<string, integer>
function Object:set_entries(entries)
  for name, n in pairs(entries) do
    check.whole(n, 1, 2 ^ 32 - 1, 'session.bpf takes numbers of entries')
    local code = self.lib.bpf_map__set_max_entries(self:find('map', name), n)
    if code < 0 then failure.raise('%s: map %s: %s', self.name, name, sys.strerror(-code)) end
  end
end

--- Describes why the object could not be loaded.
---@param code integer a positive errno
---@return string
function Object:load_error(code)
  local sections = {}
  for name in pairs(self.programs) do
    sections[name] = self:section(name)
  end
  return libbpf.load_error(self.name, code, sections, self.source)
end

--- Loads all programs into the kernel. The kernel unloads them when the process exits, even if it is killed.
function Object:load()
  C.bpf_log_take()
  local code = self.lib.bpf_object__load(self.object)
  if code == -libc.EPERM then failure.unavailable('%s', self:load_error(libc.EPERM)) end
  if code < 0 then failure.raise('%s', self:load_error(-code)) end
  self.is_loaded = true
end

--- Returns the SEC() of a program.
---@param name string
---@return string
function Object:section(name) return ffi.string(self.lib.bpf_program__section_name(self:find('program', name))) end

--- Returns the file descriptor of a loaded program.
---@param name string
---@return integer
function Object:program_fd(name) return self.lib.bpf_program__fd(self:find('program', name)) end

return Object
