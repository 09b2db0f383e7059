-- SPDX-License-Identifier: GPL-2.0-only
--- Typed views: how scripts see an event. Each class gets a C type made from the fields of its format,
--- so that `ev.next_pid` compiles to one load. Members of the sample itself start with an underscore
--- (`ev._time`), because payloads have fields such as `pid` and `comm` too.
---
--- The `__index` functions are generated as chains of comparisons with the field names. The name is a
--- constant in compiled code, so the chain folds away and only the load remains.
local bit = require 'bit'
local ffi = require 'ffi'
local sampling = require 'bindings.view.sampling'

ffi.cdef 'size_t strnlen(const char *s, size_t max);'

local C = ffi.C
local views = {}

local FIELD = {
  SIGNED = C.FIELD_SIGNED,
  ARRAY = C.FIELD_ARRAY,
  DYNAMIC = C.FIELD_DYNAMIC,
  RELATIVE = C.FIELD_RELATIVE,
  STRING = C.FIELD_STRING,
  POINTER = C.FIELD_POINTER,
  COMMON = C.FIELD_COMMON,
}
local function has(field, flag) return bit.band(field.flags, FIELD[flag]) ~= 0 end
views.has = has

--- Members that every event has, besides the methods.
views.SAMPLE_WORDS = { '_time', '_stack', '_pid', '_tid', '_cpu', '_comm', '_event', '_period', '_key' }
views.METHODS = { 'keep', 'u64' }

---@class Field
---@field name string
---@field type string as written in the format
---@field offset integer
---@field size integer
---@field elem_size integer
---@field count integer
---@field flags integer

--- Returns the fields of a tracepoint as Lua tables.
---@param tp ffi.cdata* struct tracepoint *
---@return Field[] list in the format's order
---@return table<string, Field> by_name
function views.fields(tp)
  local list, by_name = {}, {}
  for i = 0, C.tracepoint_nr_fields(tp) - 1 do
    local f = C.tracepoint_field(tp, i)
    local field = {
      name = ffi.string(f.name),
      type = ffi.string(f.type),
      offset = f.offset,
      size = f.size,
      elem_size = f.elem_size,
      count = f.count,
      flags = f.flags,
    }
    list[#list + 1] = field
    by_name[field.name] = field
  end
  return list, by_name
end

local INT = { [1] = 'int8_t', [2] = 'int16_t', [4] = 'int32_t', [8] = 'int64_t' }

--- Returns the C type of one element, nil if it is not an integer.
local function int_type(field)
  local t = INT[field.elem_size]
  return t and (has(field, 'SIGNED') and t or 'u' .. t)
end

local function is_array(field)
  return has(field, 'ARRAY') and not has(field, 'STRING') and not has(field, 'DYNAMIC')
    and field.count > 0 and int_type(field) ~= nil
end

--- Converts a 64-bit integer to a number if that is exact; otherwise returns it unchanged.
local function i64(v)
  if v >= -9007199254740992LL and v <= 9007199254740992LL then return tonumber(v) end
  return v
end
local function u64(v)
  if v <= 9007199254740992ULL then return tonumber(v) end
  return v
end
local function identity(v) return v end

local array_types = {}

--- Returns the name of the struct that holds a fixed-size array. Its indexing is checked: scripts must not
--- read arbitrary memory.
local function array_type(field)
  local element, count = int_type(field), field.count
  local name = ('struct profscript_%s_%d'):format(element, count)
  if not array_types[name] then
    ffi.cdef(('%s { %s at[%d]; } __attribute__((packed));'):format(name, element, count))
    local convert = field.elem_size == 8 and (has(field, 'SIGNED') and i64 or u64) or identity
    ffi.metatype(name, {
      __index = function(array, i)
        if type(i) ~= 'number' or i < 0 or i >= count then
          error(('index %s is out of range 0..%d'):format(tostring(i), count - 1), 2)
        end
        return convert(array.at[i])
      end,
      __len = function() return count end,
    })
    array_types[name] = true
  end
  return name
end

--- Returns the declaration of the field in the payload's struct.
local function member(field)
  local name = field.name
  if has(field, 'DYNAMIC') then return 'uint32_t ' .. name end
  if has(field, 'STRING') then return ('char %s[%d]'):format(name, field.size) end
  if is_array(field) then return ('%s %s'):format(array_type(field), name) end
  if not has(field, 'ARRAY') and int_type(field) then return ('%s %s'):format(int_type(field), name) end
  return ('uint8_t %s[%d]'):format(name, field.size)
end

local function is_identifier(name) return name:match '^[%a_][%w_]*$' ~= nil end

--- Returns the members of a packed struct with all fields at their offsets. Fields that overlap earlier
--- ones, or whose names are not C identifiers, are left out.
---@param list Field[]
---@return string body
local function payload_struct(list)
  local sorted, parts, at = {}, {}, 0
  for i, field in ipairs(list) do
    sorted[i] = field
  end
  table.sort(sorted, function(a, b) return a.offset < b.offset end)
  for _, field in ipairs(sorted) do
    local decl = is_identifier(field.name) and member(field)
    if decl and field.offset >= at and pcall(ffi.typeof, 'struct { ' .. decl .. '; }') then
      if field.offset > at then parts[#parts + 1] = ('uint8_t _pad%d[%d];'):format(at, field.offset - at) end
      parts[#parts + 1] = decl .. ';'
      at = field.offset + field.size
    end
  end
  return #parts > 0 and table.concat(parts, ' ') or 'uint8_t _none;'
end

--- Returns the string at p, which ends at its NUL or after `size` bytes.
local function bounded_string(p, size) return ffi.string(p, C.strnlen(p, size)) end

--- Returns offset and length of a dynamic field's bytes; length 0 if they exceed the record.
local function dynamic(word, base, raw_size)
  local offset, length = bit.band(word, 0xffff) + base, bit.rshift(word, 16)
  if offset + length > raw_size then return 0, 0 end
  return offset, length
end

local function dynamic_string(e, word, base)
  local offset, length = dynamic(word, base, e._raw_size)
  return bounded_string(e._raw + offset, length)
end

local function dynamic_bytes(e, word, base)
  local offset, length = dynamic(word, base, e._raw_size)
  return ffi.string(e._raw + offset, length)
end

--- Returns the C type to read a field with.
local function load_type(field)
  if has(field, 'DYNAMIC') then return 'uint32_t' end
  if is_array(field) then return array_type(field) end
  if has(field, 'STRING') or has(field, 'ARRAY') then return 'char' end
  return int_type(field) or 'char'
end

local pointer_types = {}

--- Returns a Lua expression that loads the field. It uses the offset instead of a struct with all fields:
--- LuaJIT is limited to 65536 C types, and a session can have thousands of events.
local function load_code(field)
  local name = load_type(field)
  pointer_types[name] = pointer_types[name] or ffi.typeof(('const %s *'):format(name))
  local pointer = ("cast(pointer['%s'], e._raw + %d)"):format(name, field.offset)
  return name == 'char' and pointer or pointer .. '[0]'
end

--- Returns a Lua expression for the value of the field of event e.
local function reader(field)
  local load = load_code(field)
  if has(field, 'DYNAMIC') then
    local base = has(field, 'RELATIVE') and field.offset + field.size or 0
    local read = has(field, 'STRING') and 'dynamic_string' or 'dynamic_bytes'
    return ('%s(e, %s, %d)'):format(read, load, base)
  elseif has(field, 'STRING') then
    return ('bounded_string(%s, %d)'):format(load, field.size)
  elseif is_array(field) then
    return load
  elseif has(field, 'ARRAY') or not int_type(field) then
    return ('ffi_string(%s, %d)'):format(load, field.size)
  elseif field.elem_size == 8 then
    return ('%s(%s)'):format(has(field, 'SIGNED') and 'i64' or 'u64', load)
  end
  return load
end

ffi.cdef [[
struct profscript_event_words {
  double _time;
  const uint8_t *_raw;
  const uint64_t *_chain;
  int64_t _key;
  uint32_t _raw_size;
  int32_t _pid, _tid, _cpu;
  uint16_t _class, _flags;
  uint32_t _ring;
  uint64_t _period;
};
]]
assert(ffi.sizeof 'struct profscript_event_words' == ffi.sizeof 'struct event', 'struct event and its view differ')

---@class View
---@field type ffi.ctype* pointer to the event
---@field payload ffi.ctype* pointer to a struct of the payload's fields
---@field size integer end of the last field: the payload has at least this many bytes
---@field names string[] all names that scripts can read

local serial = 0

-- The upvalues of the generated functions. Compiled code treats them as constants.
local UPVALUES = 'local cast, pointer, ffi_string, bounded_string, dynamic_string, dynamic_bytes, i64, u64,'
  .. ' task_name, stack, part, keep, u64_of, unknown = ...\n'

--- Returns the body of a function(e, k) that returns field k.
local function index_source(name, list, parts)
  local code = {}
  for _, word in ipairs(parts) do
    code[#code + 1] = ("  if k == '_%s' then return u64(part(e, %d)) end\n"):format(word, sampling.NUMBERS[word])
  end
  for _, field in ipairs(list) do
    code[#code + 1] = ("  if k == '%s' then return %s end\n"):format(field.name, reader(field))
  end
  code[#code + 1] = "  if k == '_comm' then return task_name(e._tid, e._time) end\n"
  code[#code + 1] = "  if k == '_stack' then return stack(e) end\n"
  code[#code + 1] = ("  if k == '_event' then return %q end\n"):format(name)
  code[#code + 1] = "  if k == 'keep' then return keep end\n  if k == 'u64' then return u64_of end\n"
  code[#code + 1] = '  return unknown(k)\n'
  return table.concat(code)
end

--- Returns the body of a function(e, k) that returns all 64 bits of field k.
local function u64_source(list)
  local code = {}
  for _, field in ipairs(list) do
    if field.elem_size == 8 and not has(field, 'ARRAY') and not has(field, 'DYNAMIC') then
      code[#code + 1] = ("  if k == '%s' then return %s + 0ULL end\n"):format(field.name, load_code(field))
    end
  end
  return table.concat(code) .. '  return e[k] + 0ULL\n'
end

--- Members that a view creates at first use: a glob can select thousands of events, and most are only printed.
local makers = {}

function makers.type(view)
  serial = serial + 1
  local event_name = 'struct profscript_event_' .. serial
  ffi.cdef(event_name .. ' { struct profscript_event_words; };')
  local name, context = view.name, view.context
  local function unknown(k) error(("event %s has no field '%s'"):format(name, tostring(k)), 2) end
  local function compile(text, u64_of)
    local chunk = assert(loadstring(UPVALUES .. 'return function(e, k)\n' .. text .. 'end', '=view of ' .. name))
    return chunk(ffi.cast, pointer_types, ffi.string, bounded_string, dynamic_string, dynamic_bytes, i64, u64,
      context.task_name, context.stack, context.part, context.keep, u64_of, unknown)
  end
  local u64_of = compile(u64_source(view.list))
  ffi.metatype(event_name, { __index = compile(index_source(name, view.list, view.parts), u64_of) })
  return ffi.typeof(event_name .. ' *')
end

function makers.payload(view)
  serial = serial + 1
  local payload_name = 'struct profscript_payload_' .. serial
  ffi.cdef(('%s { %s } __attribute__((packed));'):format(payload_name, payload_struct(view.list)))
  return ffi.typeof(payload_name .. ' *')
end

local View = {
  __index = function(view, key)
    local make = makers[key]
    if make then view[key] = make(view) end
    return rawget(view, key)
  end,
}

--- Creates the view of one class.
---@param name string the event's name, the value of `ev._event`
---@param list Field[] the payload's fields; empty for events without payload
---@param context Services
---@param sample? string[] optional parts of each sample, see bindings/view/sampling.lua
---@return View
function views.new(name, list, context, sample)
  local names, size, parts = {}, 0, {}
  for _, part in ipairs(sample or {}) do
    if sampling.NUMBERS[part] then
      parts[#parts + 1] = part
      names[#names + 1] = '_' .. part
    end
  end
  for _, field in ipairs(list) do
    names[#names + 1] = field.name
    size = math.max(size, field.offset + field.size)
  end
  for _, set in ipairs { views.SAMPLE_WORDS, views.METHODS } do
    for _, word in ipairs(set) do
      names[#names + 1] = word
    end
  end
  return setmetatable({ name = name, list = list, context = context, names = names, size = size, parts = parts }, View)
end

--- Returns a function that casts a struct event, such as one kept by a pair, to what scripts see.
---@param view View
---@return fun(e: ffi.cdata*): any
function views.caster(view)
  local type = view.type
  return function(e) return ffi.cast(type, e) end
end

return views
