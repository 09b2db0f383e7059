-- SPDX-License-Identifier: GPL-2.0-only
--- Writers of the fields of events. For each class a function is generated that passes each field to a function of the
--- format, without a Lua string or table per event.
local addresses = require 'bindings.print.addresses'
local bit = require 'bit'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local views = require 'bindings.view.views'

local C = ffi.C
local fields = {}
local has = views.has

--- What a format does with the fields. key is what `key` returned.
---@class FieldWriter
---@field key fun(name: string): any is called once for each field, before the first event
---@field fixed? fun(b: ffi.cdata*, run: ffi.cdata*, n: integer, raw: ffi.cdata*) writes n fields at fixed places of the
--- payload (struct json_field), instead of int, uint, address and text
---@field bytes? ffi.cdata* struct bytes * for fixed
---@field int fun(key: any, value: number|ffi.cdata*)
---@field uint fun(key: any, value: number|ffi.cdata*)
---@field address fun(key: any, value: number|ffi.cdata*)
---@field text fun(key: any, text: ffi.cdata*, size: integer) not escaped, and perhaps no UTF-8
---@field list fun(key: any, values: ffi.cdata*, size: integer, is_signed: integer, count: integer) integers of size
--- bytes each; is_signed: 0 or 1

local MAX_HEX = 64 -- bytes of a field without a known type

local TYPES = { [1] = 'int8_t', [2] = 'int16_t', [4] = 'int32_t', [8] = 'int64_t' }

local function c_type(field)
  local name = TYPES[field.elem_size]
  return name and (has(field, 'SIGNED') and name or 'u' .. name)
end

--- Returns offset and length of a dynamic field. The length is 0 if the field exceeds the record.
local function dynamic(word, base, raw_size)
  local offset, length = bit.band(word, 0xffff) + base, bit.rshift(word, 16)
  if offset + length > raw_size then return 0, 0 end
  return offset, length
end

--- Passes bytes of no known type as hexadecimal text.
local function put_hex(text, key, raw, size)
  local parts = {}
  for i = 0, math.min(size, MAX_HEX) - 1 do parts[i + 1] = ('%02x'):format(raw[i]) end
  local s = table.concat(parts)
  text(key, s, #s)
end

--- Returns how C finds a field with a fixed place (enum json_kind); nil for others.
local function fixed_kind(field, is_address)
  if has(field, 'DYNAMIC') then return end
  if has(field, 'STRING') then return C.JSON_TEXT end
  if has(field, 'ARRAY') or not c_type(field) then return end
  return is_address[field.name] and C.JSON_ADDRESS or has(field, 'SIGNED') and C.JSON_INT or C.JSON_UINT
end

--- Returns the statement that writes the fields from number `from` on that have fixed places, and the number after
--- them; nil if there is none.
local function fixed_statement(list, is_address, keys, from, runs)
  local last = from
  while list[last] and fixed_kind(list[last], is_address) do last = last + 1 end
  if last == from then return end
  local run = ffi.new('struct json_field[?]', last - from)
  for i = from, last - 1 do
    local field, one = list[i], run[i - from]
    one.key, one.key_size, one.kind = keys[i], #keys[i], fixed_kind(field, is_address)
    one.offset, one.size = field.offset, field.size
  end
  runs[#runs + 1] = run
  return ('fixed(bytes, runs[%d], %d, e.raw)'):format(#runs, last - from), last
end

--- Returns the source of the statement that writes field number i of event e.
local function statement(field, is_address, i)
  local at = ('e.raw + %d'):format(field.offset)
  local kind, is_signed = c_type(field), has(field, 'SIGNED') and 1 or 0
  if has(field, 'DYNAMIC') then
    local base = has(field, 'RELATIVE') and field.offset + field.size or 0
    local take = ("offset, length = dynamic(cast(types.uint32_t, %s)[0], %d, e.raw_size)\n"):format(at, base)
    if has(field, 'STRING') then
      return ('%sput.text(keys[%d], cast(types.char, e.raw + offset), tonumber(strnlen(e.raw + offset, length)))')
        :format(take, i)
    elseif kind and field.elem_size > 1 then
      return ('%sput.list(keys[%d], e.raw + offset, %d, %d, (length - length %% %d) / %d)'):format(take, i,
        field.elem_size, is_signed, field.elem_size, field.elem_size)
    end
    return ('%sput_hex(put.text, keys[%d], e.raw + offset, length)'):format(take, i)
  elseif has(field, 'STRING') then
    return ('put.text(keys[%d], cast(types.char, %s), tonumber(strnlen(%s, %d)))'):format(i, at, at, field.size)
  elseif has(field, 'ARRAY') and kind and field.count > 0 and field.elem_size > 1 then
    return ('put.list(keys[%d], %s, %d, %d, %d)'):format(i, at, field.elem_size, is_signed, field.count)
  elseif has(field, 'ARRAY') or not kind then
    return ('put_hex(put.text, keys[%d], %s, %d)'):format(i, at, field.size)
  end
  local word = is_address[field.name] and 'address' or has(field, 'SIGNED') and 'int' or 'uint'
  return ('put.%s(keys[%d], cast(types.%s, %s)[0])'):format(word, i, kind, at)
end

local SOURCE = [[
local put, keys, types, cast, dynamic, strnlen, put_hex, size, runs, bytes = ...
local fixed = put.fixed
return function(e)
  if e.raw_size < size then return end
  local offset, length
  %s
end
]]
local MAX_FIELDS = 150 -- in one function

local pointers = { char = ffi.typeof 'const char *' }
for _, name in pairs(TYPES) do
  pointers[name] = ffi.typeof(('const %s *'):format(name))
  pointers['u' .. name] = ffi.typeof(('const u%s *'):format(name))
end

--- Returns the fields that are exported: all but those that every event has.
---@param event Event
---@return Field[]
function fields.of(event)
  local list = {}
  for _, field in ipairs(event.list) do
    if not has(field, 'COMMON') and not field.name:match '^common_' and #list < MAX_FIELDS then
      list[#list + 1] = field
    end
  end
  return list
end

--- Returns a function that passes the fields of an event to a format.
---@param event Event
---@param put FieldWriter
---@return fun(e: ffi.cdata*) write takes a struct event *
function fields.writer(event, put)
  local list, is_address, code, keys, i = fields.of(event), addresses.of(event), {}, {}, 1
  local runs = { keys = keys } -- the strings that they point at
  for k, field in ipairs(list) do keys[k] = put.key(field.name) end
  while list[i] do
    local source, after
    if put.fixed then source, after = fixed_statement(list, is_address, keys, i, runs) end
    code[#code + 1] = source or statement(list[i], is_address, i)
    i = after or i + 1
  end
  if #code == 0 then return function() end end
  local source = SOURCE:format(table.concat(code, '\n  '))
  return assert(loadstring(source, '=fields of ' .. event.name))(put, keys, pointers, ffi.cast, dynamic,
    libc.strnlen, put_hex, event.view.size, runs, put.bytes)
end

--- Returns a function that writes the key of a pair as JSON.
---@param before string what is written before the key
---@param source SliceSource
---@return fun(b: ffi.cdata*, p: ffi.cdata*) write takes a struct bytes * and a struct pair *
function fields.pair_key(before, source)
  if not source.has_addresses then
    return function(b, p) C.json_member_int(b, before, #before, p.key) end
  end
  local field = ffi.new('struct json_field[1]', { { key = before, key_size = #before, kind = C.JSON_ADDRESS,
    offset = ffi.offsetof('struct pair', 'key'), size = ffi.sizeof 'int64_t' } })
  return function(b, p) C.json_fields(b, field, 1, p) end
end

return fields
