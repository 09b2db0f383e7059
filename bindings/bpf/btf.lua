-- SPDX-License-Identifier: GPL-2.0-only
--- BTF: reads and writes values by their BTF types, and turns the members of a struct into event fields.
local bit = require 'bit'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'
local sys = require 'bindings.base.sys'

local C = ffi.C
local btf = {}

local KIND = {
  INT = 1, PTR = 2, ARRAY = 3, STRUCT = 4, UNION = 5, ENUM = 6, TYPEDEF = 8, VOLATILE = 9, CONST = 10,
  RESTRICT = 11, FUNC = 12, VAR = 14, DATASEC = 15, FLOAT = 16, TYPE_TAG = 18, ENUM64 = 19,
}
btf.KIND = KIND

ffi.cdef [[
struct btf_type { uint32_t name_off, info; union { uint32_t size, type; }; };
struct btf_member { uint32_t name_off, type, offset; };
struct btf_array { uint32_t type, index_type, nelems; };
struct btf_enum { uint32_t name_off; int32_t value; };
struct btf_param { uint32_t name_off, type; };
struct btf_secinfo { uint32_t type, offset, size; };
]]

local WRAPPERS = {
  [KIND.TYPEDEF] = true, [KIND.VOLATILE] = true, [KIND.CONST] = true, [KIND.RESTRICT] = true, [KIND.TYPE_TAG] = true,
}
local SIZED = {
  [KIND.INT] = true, [KIND.STRUCT] = true, [KIND.UNION] = true, [KIND.ENUM] = true, [KIND.ENUM64] = true,
  [KIND.DATASEC] = true, [KIND.FLOAT] = true,
}
local SIGNED = 1 -- encoding of an INT

btf.FOLDER = '/sys/kernel/btf/'

---@class Btf
---@field types ffi.cdata* struct btf_types *
local Btf = {}
Btf.__index = Btf

local function new(types)
  return setmetatable({ types = ffi.gc(types, C.btf_types_close), codecs = {}, found = {} }, Btf)
end

--- Returns the types in BTF data, which is copied.
---@param data ffi.cdata* const void *
---@param size integer bytes
---@return Btf? types, string? message
function btf.copy(data, size)
  local types = ffi.new 'struct btf_types *[1]'
  local code = C.btf_types_copy(data, size, types)
  if code < 0 then return nil, sys.strerror(-code) end
  return new(types[0])
end

local of_kernel = {} -- and of modules, for the whole run

--- Returns the types of the running kernel, or those of one of its modules, then those of the kernel.
---@param module? string
---@return Btf? types, string? message
function btf.kernel(module)
  local name, types = module or 'vmlinux', ffi.new 'struct btf_types *[1]'
  if of_kernel[name] then return of_kernel[name] end
  local code = -C.btf_types_open(btf.FOLDER .. name, module and btf.kernel().types or nil, types)
  if code == 0 then of_kernel[name] = new(types[0]) end
  local why = code == libc.ENOENT and ' (CONFIG_DEBUG_INFO_BTF)' or ' that can be read: ' .. sys.strerror(code)
  return of_kernel[name], code > 0 and ('this kernel has no %s%s%s'):format(btf.FOLDER, name, why) or nil
end

local function kind_of(t) return bit.band(bit.rshift(t.info, 24), 0x1f) end
local function count_of(t) return bit.band(t.info, 0xffff) end
--- Returns the data after a struct btf_type, whose type depends on its kind.
local function data_of(t, type) return ffi.cast('const struct ' .. type .. ' *', t + 1) end

function Btf:name_at(offset) return ffi.string(C.btf_types_name(self.types, offset)) end

--- Resolves typedefs and qualifiers.
---@param id integer
---@return ffi.cdata* type, integer kind, integer id
function Btf:resolve(id)
  local t = C.btf_types_at(self.types, id)
  while WRAPPERS[kind_of(t)] do
    id = t.type
    t = C.btf_types_at(self.types, id)
  end
  return t, kind_of(t), id
end

--- Returns the id of the type with this name, nil if there is none.
---@param name string
---@param kind integer
---@return integer?
function Btf:find(name, kind)
  local key = kind .. name
  local id = self.found[key] or C.btf_types_find(self.types, name, kind)
  self.found[key] = id
  return id > 0 and id or nil
end

--- Returns the size of a type, 0 if it has none.
---@param id integer
---@return integer bytes
function Btf:size(id)
  local t, kind = self:resolve(id)
  if kind == KIND.PTR then return 8 end
  if kind == KIND.VAR then return self:size(t.type) end
  if kind == KIND.ARRAY then
    local array = data_of(t, 'btf_array')
    return array.nelems * self:size(array.type)
  end
  return SIZED[kind] and t.size or 0
end

--- Returns the members of a struct or union, including those of anonymous structs in it. Offsets and widths are in
--- bits. The width is 0 unless the member is a bit field.
---@param id integer type id, without typedefs
---@return { name: string, type: integer, offset: integer, width: integer }[]
function Btf:members(id)
  local t, list = C.btf_types_at(self.types, id), {}
  local has_bit_fields = bit.band(t.info, 0x80000000) ~= 0
  local member = data_of(t, 'btf_member')
  for i = 0, count_of(t) - 1 do
    local m = member[i]
    local offset, width = m.offset, 0
    if has_bit_fields then
      offset, width = bit.band(offset, 0xffffff), bit.rshift(offset, 24)
    end
    local name = self:name_at(m.name_off)
    local _, kind, inner = self:resolve(m.type)
    if name == '' and (kind == KIND.STRUCT or kind == KIND.UNION) then
      for _, one in ipairs(self:members(inner)) do
        one.offset = one.offset + offset
        list[#list + 1] = one
      end
    else
      list[#list + 1] = { name = name, type = m.type, offset = offset, width = width }
    end
  end
  return list
end

--- Returns the number of a function type's parameters.
---@param id integer
---@return integer
function Btf:parameters(id) return count_of(C.btf_types_at(self.types, id)) end

--- Returns the enumerators of an enumeration with their values; an empty table if there is none.
---@param name string
---@return table<string, integer>
function Btf:enumerators(name)
  local id, found = self:find(name, KIND.ENUM), {}
  if not id then return found end
  local t = C.btf_types_at(self.types, id)
  local one = data_of(t, 'btf_enum')
  for i = 0, count_of(t) - 1 do found[self:name_at(one[i].name_off)] = one[i].value end
  return found
end

--- Returns the types of a function's parameters as text: 'size_t', 'page *', ' *' for a pointer to no type.
---@param id integer type id of the prototype
---@return string[]
function Btf:parameter_types(id)
  local list, t = {}, C.btf_types_at(self.types, id)
  local parameter = data_of(t, 'btf_param')
  for i = 0, count_of(t) - 1 do
    local resolved, kind = self:resolve(parameter[i].type)
    if kind == KIND.PTR then
      list[i + 1] = (resolved.type > 0 and self:name_at(self:resolve(resolved.type).name_off) or '') .. ' *'
    else
      list[i + 1] = self:name_at(C.btf_types_at(self.types, parameter[i].type).name_off)
    end
  end
  return list
end

--- Returns the variables of a section such as ".rodata".
---@param section string
---@return table<string, { type: integer, offset: integer }>
function Btf:variables(section)
  local id, found = self:find(section, KIND.DATASEC), {}
  if not id then return found end
  local t = C.btf_types_at(self.types, id)
  local info = data_of(t, 'btf_secinfo')
  for i = 0, count_of(t) - 1 do
    local variable = C.btf_types_at(self.types, info[i].type)
    found[self:name_at(variable.name_off)] = { type = variable.type, offset = info[i].offset }
  end
  return found
end

-- Values -----------------------------------------------------------------------------------------

--- Reads and writes values of one type in memory; p is a uint8_t *.
---@class Codec
---@field size integer
---@field read fun(p: ffi.cdata*): any
---@field write fun(p: ffi.cdata*, value: any)

local function exact(value)
  local n = tonumber(value)
  return n < 2 ^ 53 and n > -2 ^ 53 and n or value
end

local function number_codec(type, size)
  local pointer = ffi.typeof(type .. ' *')
  return {
    size = size,
    read = function(p) return exact(ffi.cast(pointer, p)[0]) end,
    write = function(p, value)
      if type ~= 'bool' and _G.type(value) ~= 'number' and _G.type(value) ~= 'cdata' then
        error(('expected a %s, not a %s'):format(type, _G.type(value)), 0)
      end
      ffi.cast(pointer, p)[0] = value
    end,
  }
end

local function bool_codec()
  return {
    size = 1,
    read = function(p) return p[0] ~= 0 end,
    write = function(p, value) p[0] = value and value ~= 0 and 1 or 0 end,
  }
end

local function string_codec(size)
  return {
    size = size,
    read = function(p) return ffi.string(p, libc.strnlen(p, size)) end,
    write = function(p, value)
      value = tostring(value)
      if #value > size then error(("'%s' is longer than %d bytes"):format(value, size), 0) end
      ffi.fill(p, size)
      ffi.copy(p, value, #value)
    end,
  }
end

local function array_codec(element, count)
  return {
    size = element.size * count,
    read = function(p)
      local list = {}
      for i = 0, count - 1 do
        list[i] = element.read(p + i * element.size)
      end
      return list
    end,
    write = function(p, list)
      for i in pairs(list) do
        if type(i) ~= 'number' or i < 0 or i >= count then
          error(('index %s is out of range 0..%d'):format(tostring(i), count - 1), 0)
        end
      end
      for i = 0, count - 1 do
        if list[i] ~= nil then element.write(p + i * element.size, list[i]) end
      end
    end,
  }
end

local function bit_codec(offset, width)
  local mask = bit.lshift(1ULL, width) - 1
  local function word(p) return ffi.cast('uint64_t *', p + bit.rshift(offset, 3)) end
  local shift = bit.band(offset, 7)
  return {
    read = function(p) return exact(bit.band(bit.rshift(word(p)[0], shift), mask)) end,
    write = function(p, value)
      local w = word(p)
      w[0] = bit.bor(bit.band(w[0], bit.bnot(bit.lshift(mask, shift))), bit.lshift(bit.band(value + 0ULL, mask), shift))
    end,
  }
end

local function struct_codec(self, id, size)
  local members = {}
  for _, m in ipairs(self:members(id)) do
    if m.width > 0 then
      members[m.name] = { offset = 0, codec = bit_codec(m.offset, m.width) }
    else
      members[m.name] = { offset = m.offset / 8, codec = self:codec(m.type) }
    end
  end
  return {
    size = size,
    read = function(p)
      local value = {}
      for name, m in pairs(members) do
        value[name] = m.codec.read(p + m.offset)
      end
      return value
    end,
    write = function(p, value)
      if type(value) ~= 'table' then error(('expected a table, not a %s'):format(type(value)), 0) end
      for name, one in pairs(value) do
        local m = members[name]
        if not m then
          local hint = nearest.hint(tostring(name), nearest.keys(members))
          error(("no member '%s'%s"):format(tostring(name), hint), 0)
        end
        m.codec.write(p + m.offset, one)
      end
    end,
  }
end

local INT = { [1] = 'int8_t', [2] = 'int16_t', [4] = 'int32_t', [8] = 'int64_t' }

local function make_codec(self, id)
  local t, kind, resolved = self:resolve(id)
  if kind == KIND.INT then
    local signed = bit.band(bit.rshift(ffi.cast('const uint32_t *', t + 1)[0], 24), SIGNED) ~= 0
    if self:name_at(t.name_off) == '_Bool' then return bool_codec() end
    if INT[t.size] then return number_codec((signed and '' or 'u') .. INT[t.size], t.size) end
  elseif kind == KIND.PTR then
    return number_codec('uint64_t', 8)
  elseif (kind == KIND.ENUM or kind == KIND.ENUM64) and INT[t.size] then
    return number_codec(INT[t.size], t.size)
  elseif kind == KIND.FLOAT and (t.size == 4 or t.size == 8) then
    return number_codec(t.size == 4 and 'float' or 'double', t.size)
  elseif kind == KIND.ARRAY then
    local array = data_of(t, 'btf_array')
    if self:is_char(array.type) then return string_codec(array.nelems) end
    return array_codec(self:codec(array.type), array.nelems)
  elseif kind == KIND.STRUCT or kind == KIND.UNION then
    return struct_codec(self, resolved, t.size)
  end
  local size = self:size(id)
  return { size = size, read = function(p) return ffi.string(p, size) end, write = string_codec(size).write }
end

--- Returns whether a type is `char`. Arrays of it are strings.
function Btf:is_char(id)
  local t, kind = self:resolve(id)
  return kind == KIND.INT and self:name_at(t.name_off) == 'char'
end

---@param id integer
---@return Codec
function Btf:codec(id)
  local codec = self.codecs[id] or make_codec(self, id)
  self.codecs[id] = codec
  return codec
end

--- Returns the codec of values without BTF: unsigned integers, or bytes.
---@param size integer
---@return Codec
function btf.plain_codec(size)
  if INT[size] then return number_codec('u' .. INT[size], size) end
  return { size = size, read = function(p) return ffi.string(p, size) end, write = string_codec(size).write }
end

-- Fields -----------------------------------------------------------------------------------------

local function add_field(self, list, name, id, offset)
  local t, kind, resolved = self:resolve(id)
  local field = { name = name, offset = offset, size = self:size(id), count = 1, flags = 0, type = 'bytes' }
  field.elem_size = field.size
  if kind == KIND.STRUCT or kind == KIND.UNION then
    for _, m in ipairs(self:members(resolved)) do
      if m.width == 0 then add_field(self, list, name .. '_' .. m.name, m.type, offset + m.offset / 8) end
    end
    return
  elseif kind == KIND.ARRAY then
    local array = data_of(t, 'btf_array')
    local element, element_kind = self:resolve(array.type)
    field.count, field.flags = array.nelems, C.FIELD_ARRAY
    field.elem_size = self:size(array.type)
    field.type = self:name_at(element.name_off) .. '[]'
    if self:is_char(array.type) then field.flags = field.flags + C.FIELD_STRING end
    t, kind = element, element_kind
  else
    field.type = self:name_at(t.name_off)
  end
  if kind == KIND.INT and bit.band(bit.rshift(ffi.cast('const uint32_t *', t + 1)[0], 24), SIGNED) ~= 0 then
    field.flags = field.flags + C.FIELD_SIGNED
  elseif kind == KIND.PTR then
    field.type, field.flags = 'void *', field.flags + C.FIELD_POINTER
  end
  list[#list + 1] = field
end

--- Returns the members of a struct as event fields. Members of nested structs are named outer_inner. Bit fields are
--- omitted.
---@param id integer
---@return Field[]
function Btf:fields(id)
  local list = {}
  local _, _, resolved = self:resolve(id)
  for _, m in ipairs(self:members(resolved)) do
    if m.width == 0 then add_field(self, list, m.name, m.type, m.offset / 8) end
  end
  return list
end

return btf
