-- SPDX-License-Identifier: GPL-2.0-only
--- Typed views: how scripts access an event. An `__index` function is generated from the fields of the event's
--- format, so that `ev.next_pid` compiles to one load. Members of the sample itself start with an underscore
--- (`ev._time`), because payloads also have fields such as `pid` and `comm`.
---
--- The function is a chain of comparisons with the field names. The name is a constant in compiled code, so the chain
--- folds away and only the load remains.
---
--- A script may keep a reference to an event after its handler has returned. When the next batch comes, the struct
--- holds another event. So the references that handlers get carry the number of their batch in the upper bits of the
--- address, and a read through one of an earlier batch is an error. Compiled code sees that the number put in is the
--- one taken out, and leaves only the load. References to structs that live longer have no number. Their memory may be
--- reused, too: a read first checks that the payload is long enough for all fields of the view.
local bit = require 'bit'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local sampling = require 'bindings.view.sampling'
local units = require 'bindings.base.units'

local C = ffi.C
local band, bor, bxor, cast, typeof = bit.band, bit.bor, bit.bxor, ffi.cast, ffi.typeof
local views = {}

local KEPT, FILTERED, PASSED = tonumber(C.EVENT_KEPT), tonumber(C.EVENT_FILTERED), tonumber(C.EVENT_PASSED)

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
views.SAMPLE_WORDS = { '_time', '_stack', '_pid', '_tid', '_cpu', '_node', '_machine', '_comm', '_event',
  '_period', '_key' }
views.METHODS = { 'keep', 'u64', 'string', 'user' }

--- Returns the field that has the string behind a pointer. Linux 6.19 uses the same name.
---@param name string of the pointer
---@return string
function views.text_field(name) return ('__%s_val'):format((name:gsub('%.', '__'))) end

--- Returns the field that has a number of a program's memory, and the one that is 0 if it could not be read.
---@param type string 'u32', 'struct sockaddr_in.sin_port'
---@param name string of the pointer
---@return string number
---@return string is_known
function views.user_field(type, name)
  local number = ('__%s_%s'):format(name:gsub('%.', '__'), (type:gsub('%W', '_')))
  return number, number .. '_ok'
end

--- Returns whether a field is a string, or the bytes of a buffer.
---@param field Field
---@return boolean
function views.is_text(field)
  if views.has(field, 'STRING') then return true end
  return views.has(field, 'DYNAMIC') and field.elem_size == 1 and field.name:match '^__.+_val$' ~= nil
end

---@class Field
---@field name string
---@field type string as in the format file
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

local function plain_field(name, type, offset, size, flags)
  return { name = name, type = type, offset = offset, size = size, elem_size = size, count = 1, flags = flags }
end

--- Returns the fields of records that have no format file: those that all records begin with, then numbers.
---@param ... string names of the numbers
---@return Field[]
function views.record_fields(...)
  local list = {
    plain_field('common_type', 'unsigned short', 0, 2, FIELD.COMMON),
    plain_field('common_flags', 'unsigned char', 2, 1, FIELD.COMMON),
    plain_field('common_preempt_count', 'unsigned char', 3, 1, FIELD.COMMON),
    plain_field('common_pid', 'int', 4, 4, bit.bor(FIELD.COMMON, FIELD.SIGNED)),
  }
  for i, name in ipairs { ... } do list[#list + 1] = plain_field(name, 'unsigned long', 8 * i, 8, 0) end
  return list
end

--- Describes the type of a field in words.
---@param field Field
---@return string
function views.kind(field)
  local words = {}
  if has(field, 'STRING') then
    words[1] = has(field, 'DYNAMIC') and 'string of any length' or 'string'
  elseif has(field, 'DYNAMIC') then
    words[1] = ('array of any length, %d bytes each'):format(field.elem_size)
  elseif has(field, 'ARRAY') then
    words[1] = ('array of %d, %d bytes each'):format(field.count, field.elem_size)
  elseif has(field, 'POINTER') then
    words[1] = 'pointer'
  else
    words[1] = has(field, 'SIGNED') and 'signed' or 'unsigned'
  end
  if has(field, 'COMMON') then words[2] = 'common' end
  return table.concat(words, ', ')
end

--- Returns which fields are text, and which numbers; others are missing.
---@param fields table<string, Field>
---@return table<string, boolean>
function views.texts(fields)
  local texts = { _comm = true, _event = true, _container = true, _cgroup = false, _node = false, _pid = false,
    _tid = false, _cpu = false, _time = false }
  for name, field in pairs(fields) do
    local is_text = has(field, 'STRING')
    if is_text or not has(field, 'ARRAY') and not has(field, 'DYNAMIC') then texts[name] = is_text end
  end
  return texts
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

-- Values are returned in parentheses, so that no call is in tail position: LuaJIT counts those of a trace, never takes
-- them back, and gives a trace up that has more than 15. What uses them runs in the interpreter then.

--- Converts a 64-bit integer to a number if that is exact. The sum is not a const type, which string.format() refuses.
local function i64(v)
  if v > -9007199254740992LL and v < 9007199254740992LL then return (tonumber(v)) end
  return v + 0LL
end
local function u64(v)
  if v < 9007199254740992ULL then return (tonumber(v)) end
  return v + 0ULL
end
local function identity(v) return v end

--- Returns the declaration of the field in the payload's struct.
local function member(field)
  local name = field.name:gsub('%.', '__')
  if has(field, 'DYNAMIC') then return 'uint32_t ' .. name end
  if has(field, 'STRING') then return ('char %s[%d]'):format(name, field.size) end
  if is_array(field) then return ('%s %s[%d]'):format(int_type(field), name, field.count) end
  if not has(field, 'ARRAY') and int_type(field) then return ('%s %s'):format(int_type(field), name) end
  return ('uint8_t %s[%d]'):format(name, field.size)
end

local function is_identifier(name) return name:match '^[%a_][%w_.]*$' ~= nil end

--- Returns the members of a packed struct with all fields at their offsets. Omits fields that overlap earlier ones or
--- whose names are not C identifiers.
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

--- Returns the string at p, up to its NUL or `size` bytes.
local function bounded_string(p, size) return (ffi.string(p, libc.strnlen(p, size))) end

--- Returns offset and length of a dynamic field. The length is 0 if the field exceeds the record.
local function dynamic(word, base, raw_size)
  local offset, length = bit.band(word, 0xffff) + base, bit.rshift(word, 16)
  if offset + length > raw_size then return 0, 0 end
  return offset, length
end

local function dynamic_string(e, word, base)
  local offset, length = dynamic(word, base, e.raw_size)
  return (bounded_string(e.raw + offset, length))
end

local function dynamic_bytes(e, word, base)
  local offset, length = dynamic(word, base, e.raw_size)
  return (ffi.string(e.raw + offset, length))
end

local event_pointer = ffi.typeof 'struct event *'

local EXPIRED = 'the event is only valid in its handler; use ev:keep() to keep a copy'

local function expired() error(EXPIRED, 2) end

local bits64 = ffi.typeof 'uint64_t'
local batch = ffi.new 'uint64_t[1]' -- the number of the current batch, in the upper bits
local ADDRESSES = 2ULL ^ 48
local batches = 1
batch[0] = ADDRESSES
views.batch = batch

--- Makes the references to events that handlers have got invalid.
function views.end_batch()
  batches = batches % 65535 + 1
  batch[0] = batches * ADDRESSES
end

--- Returns the address of an event without the number of its batch.
---@param bits ffi.cdata* uint64_t
---@param what? string the function that it was passed to
local function checked_address(bits, what)
  local found = bxor(bits, batch[0])
  if found < ADDRESSES then return found end
  if bits >= ADDRESSES then error((what and what .. ': ' or '') .. EXPIRED, 3) end
  return bits
end

--- Returns the event that a script's reference stands for.
---@param ev ffi.cdata* a view
---@return ffi.cdata* e struct event *
local function event_of(ev) return (cast(event_pointer, checked_address(cast(bits64, ev)))) end
views.event_of = event_of

local array_types = {} -- by element type, count, offset and size
local owners = setmetatable({}, { __mode = 'k' }) -- keeps kept events as long as their arrays

--- Returns the type of an array field, which holds the event's address.
---@param field Field
---@param size integer bytes of payload that the event must have
local function array_type(field, size)
  local key = ('%s %d %d %d'):format(int_type(field), field.count, field.offset, size)
  if array_types[key] then return array_types[key] end
  local offset, count = field.offset, field.count
  local convert = field.elem_size == 8 and (has(field, 'SIGNED') and i64 or u64) or identity
  local elements = ffi.typeof(('const %s *'):format(int_type(field)))
  array_types[key] = ffi.metatype('struct { const uint64_t _event; }', {
    __index = function(array, i)
      if type(i) ~= 'number' or not (i >= 0 and i < count) then
        error(('index %s is out of range 0..%d'):format(tostring(i), count - 1), 2)
      end
      local e = cast(event_pointer, checked_address(array._event))
      if e.raw_size < size then return expired() end
      return (convert(cast(elements, e.raw + offset)[i]))
    end,
    __newindex = function() error('arrays of events are read-only', 2) end,
    __len = function() return count end,
    __tostring = function(array)
      local parts = {}
      for i = 0, count - 1 do parts[i + 1] = units.number(array[i]) end
      return ('{%s}'):format(table.concat(parts, ', '))
    end,
  })
  return array_types[key]
end

--- Returns an array field of an event. The array keeps a kept event alive.
local function array_of(new_array, ev, e)
  local array = new_array(cast(bits64, ev))
  if band(e.flags, KEPT) ~= 0 then owners[array] = ev end
  return array
end

--- Returns the part of an event whose fields begin with a member's name: `ev.prev`, of which `ev.prev.pid` is a field.
local function node_of(type, ev, e)
  local node = cast(type, ev)
  if band(e.flags, KEPT) ~= 0 then owners[node] = ev end
  return node
end

local pointer_types = {}

--- Returns the C type to load a field with.
local function load_type(field)
  if has(field, 'DYNAMIC') then return 'uint32_t' end
  if has(field, 'STRING') or has(field, 'ARRAY') then return 'char' end
  return int_type(field) or 'char'
end

--- Returns a Lua expression that loads the field by offset. There is no struct with all fields, because LuaJIT is
--- limited to 65536 C types and a session can have thousands of events.
local function load_code(field)
  local name = load_type(field)
  pointer_types[name] = pointer_types[name] or ffi.typeof(('const %s *'):format(name))
  local pointer = ("cast(pointer['%s'], e.raw + %d)"):format(name, field.offset)
  return name == 'char' and pointer or pointer .. '[0]'
end

--- Returns a Lua expression for the value of the field of event e.
local function reader(field)
  if is_array(field) then return ("array_of(arrays['%s'], ev, e)"):format(field.name) end
  local load = load_code(field)
  if has(field, 'DYNAMIC') then
    local base = has(field, 'RELATIVE') and field.offset + field.size or 0
    local read = has(field, 'STRING') and 'dynamic_string' or 'dynamic_bytes'
    return ('%s(e, %s, %d)'):format(read, load, base)
  elseif has(field, 'STRING') then
    return ('bounded_string(%s, %d)'):format(load, field.size)
  elseif has(field, 'ARRAY') or not int_type(field) then
    return ('ffi_string(%s, %d)'):format(load, field.size)
  elseif field.elem_size == 8 then
    return ('%s(%s)'):format(has(field, 'SIGNED') and 'i64' or 'u64', load)
  end
  return load
end

---@class View
---@field type ffi.ctype* type of the script's argument
---@field index fun(ev: ffi.cdata*, k: string): any reads a field
---@field payload ffi.ctype* pointer to a struct of the payload's fields
---@field size integer end of the last field: the payload has at least this many bytes
---@field names string[] all names that scripts can read
---@field strings table<string, any> keys: the names that `ev:string()` takes

local serial = 0
local is_view = {} -- by ctype id

--- Returns a pointer to an opaque struct as the type that scripts see: LuaJIT refuses to index it by number, to do
--- arithmetic with it or to write through it, and all reads go through `index`.
local function opaque(index)
  serial = serial + 1
  local name = 'struct profscript_event_' .. serial
  ffi.cdef(name .. ';')
  ffi.metatype(name, {
    __index = index,
    __newindex = function() error('events are read-only', 2) end,
  })
  local pointer = ffi.typeof(name .. ' *')
  is_view[tonumber(pointer)] = true
  return pointer
end

--- Returns the event that a script passed. Errors point at the line of the caller's caller.
---@param ev any
---@param what string the function that was called: "out:print_event"
---@return ffi.cdata* e struct event *
function views.event(ev, what)
  if type(ev) ~= 'cdata' or not is_view[tonumber(typeof(ev))] then
    local kind = type(ev)
    error(('%s takes an event, not %s'):format(what, kind == 'nil' and 'nil' or kind == 'cdata' and 'other C data'
      or 'a ' .. kind), 3)
  end
  local e = cast(event_pointer, checked_address(cast(bits64, ev), what))
  if e.class == FILTERED then
    error(what .. ': ' .. EXPIRED, 3)
  end
  return e
end

--- Marks an event as one that its source passes on.
---@param ev Ev
function views.pass(ev)
  local e = views.event(ev, 'pass')
  e.flags = bor(e.flags, PASSED)
end

-- The upvalues of the generated functions. Compiled code treats them as constants.
local UPVALUES = 'local cast, event_of, as_event, pointer, arrays, array_of, ffi_string, bounded_string,'
  .. ' dynamic_string, dynamic_bytes, i64, u64, task_name, stack, part, keep, node, container, u64_of,'
  .. ' string_of, expired, unknown, rshift, member_shift, nodes, node_of, user_of = ...\n'

--- Members of the sample and methods, with the Lua code to read them.
local WORDS = {
  { '_time', 'e.time' }, { '_pid', 'e.pid' }, { '_tid', 'e.tid' }, { '_cpu', 'e.cpu' },
  { '_node', 'node(e.cpu)' }, { '_comm', 'task_name(e.tid, e.time)' }, { '_stack', 'stack(e)' },
  { '_period', 'u64(e.period)' }, { '_key', 'i64(e.key)' }, { '_machine', 'rshift(e.flags, member_shift)' },
  { 'keep', 'keep' }, { 'u64', 'u64_of' }, { 'string', 'string_of' },
  { 'user', 'user_of' },
}

--- Returns the body of a function(ev, k) that reads member k, or with a prefix such as 'prev.' the field 'prev.' .. k.
--- each_node(prefix) is called for the members of members.
local function index_source(view, prefix, each_node)
  local code, nodes = { '  local e = event_of(ev)\n' }, {}
  local function case(name, value, before)
    code[#code + 1] = ("  if k == '%s' then %s return (%s) end\n"):format(name, before or '', value)
  end
  for _, word in ipairs(view.parts) do
    local value = ('part(e, %d)'):format(sampling.NUMBERS[word])
    case('_' .. word, ('u64(%s)'):format(value))
    if word == 'cgroup' then case('_container', ('container(%s)'):format(value)) end
  end
  local check = ('if e.raw_size < %d then return expired() end'):format(view.size)
  for _, field in ipairs(view.list) do
    local node = field.name:sub(1, #prefix) == prefix and field.name:match('^([^.]+)%.', #prefix + 1)
    if node and not nodes[node] then
      nodes[node] = true
      each_node(prefix .. node .. '.')
      case(node, ("node_of(nodes['%s%s.'], ev, e)"):format(prefix, node))
    end
  end
  for _, field in ipairs(view.list) do
    local name = field.name:sub(#prefix + 1)
    if prefix .. name == field.name and not name:find('.', 1, true) then case(name, reader(field), check) end
  end
  for _, word in ipairs(prefix == '' and WORDS or {}) do case(word[1], word[2]) end
  if prefix == '' then case('_event', ('%q'):format(view.name)) end
  code[#code + 1] = ("  return unknown('%s' .. k)\n"):format(prefix)
  return table.concat(code)
end

--- Returns the body of a function(ev, k) that reads all 64 bits of field k.
local function u64_source(view)
  local code = { "  local e = as_event(ev, 'ev:u64')\n" }
  for _, field in ipairs(view.list) do
    if field.elem_size == 8 and not has(field, 'ARRAY') and not has(field, 'DYNAMIC') then
      code[#code + 1] = ("  if k == '%s' then if e.raw_size < %d then return expired() end return %s + 0ULL end\n")
        :format(field.name, view.size, load_code(field))
    end
  end
  return table.concat(code) .. '  return ev[k] + 0ULL\n'
end

--- Returns the fields that `ev:string()` reads, by the names it takes.
local function texts(list)
  local by_name, found = {}, {}
  for _, field in ipairs(list) do by_name[field.name] = field end
  for _, field in ipairs(list) do
    local text = by_name[views.text_field(field.name)] or field
    if views.is_text(text) then found[field.name] = text end
    local pointer = field.name:match '^__(.+)_val$' -- records of sys_exit have the string, but not the pointer
    if pointer and views.is_text(field) then found[pointer] = field end
  end
  return found
end

--- Returns the body of a function(ev, k) that reads the string behind k.
local function string_source(view)
  local code = { "  local e = as_event(ev, 'ev:string')\n" }
  for name, field in pairs(texts(view.list)) do
    code[#code + 1] = ("  if k == '%s' then if e.raw_size < %d then return expired() end return (%s) end\n")
      :format(name, view.size, reader(field))
  end
  return table.concat(code) .. '  return string_of(k)\n'
end

--- Returns the body of a function(ev) that reads a number of a program's memory; nil: the event does not have it.
local function user_source(view, type, name)
  local number, is_known = views.user_field(type, name)
  local fields = {}
  for _, field in ipairs(view.list) do fields[field.name] = field end
  if not fields[is_known] then return end
  return ("  local e = as_event(ev, 'ev:user')\n  if e.raw_size < %d then return expired() end\n")
    :format(view.size) .. ('  if %s == 0 then return end\n  return (%s)\n'):format(load_code(fields[is_known]),
    reader(fields[number]))
end

--- Members of a view that are created on first use: a glob can select thousands of events, most of which are only
--- printed.
local makers = {}

function makers.type(view) return opaque(view.index) end

function makers.index(view)
  local name, context, arrays, nodes = view.name, view.context, {}, {}
  for _, field in ipairs(view.list) do
    if is_array(field) then arrays[field.name] = array_type(field, view.size) end
  end
  local function unknown(k)
    error(("event %s has no field '%s'%s"):format(name, tostring(k), next(nodes) and '; write all of ev.%s where it is'
      .. ' the parameter of a function' or ''):format(tostring(k)), 2)
  end
  local function no_string(k)
    error(("event %s has no string '%s'; its name must be written out in ev:string('%s')"):format(name, tostring(k),
      tostring(k)), 2)
  end
  local users, compile = {}, nil -- users: functions that read a number, by type and name
  local function user_of(ev, type, of)
    local found = users[type] and users[type][of]
    if not found then
      local text = user_source(view, tostring(type), tostring(of))
      if not text then
        error(("event %s has no %s behind '%s'; both must be written out in ev:user()"):format(name, tostring(type),
          tostring(of)), 2)
      end
      found, users[type] = compile(text), users[type] or {}
      users[type][of] = found
    end
    return (found(ev))
  end
  function compile(text, u64_of, string_of)
    local chunk = assert(loadstring(UPVALUES .. 'return function(ev, k)\n' .. text .. 'end', '=view of ' .. name))
    return chunk(cast, event_of, views.event, pointer_types, arrays, array_of, ffi.string, bounded_string,
      dynamic_string, dynamic_bytes, i64, u64, context.task_name, context.stack, context.part, context.keep,
      context.node, context.container, u64_of, string_of or no_string, expired, unknown, bit.rshift,
      tonumber(C.EVENT_MEMBER_SHIFT), nodes, node_of,
      user_of)
  end
  local function each_node(prefix) nodes[prefix] = opaque(compile(index_source(view, prefix, each_node))) end
  return compile(index_source(view, '', each_node), compile(u64_source(view)), compile(string_source(view)))
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
---@param sample? string[] optional parts of each sample (see bindings/view/sampling.lua)
---@return View
function views.new(name, list, context, sample)
  local names, size, parts = {}, 0, {}
  for _, part in ipairs(sample or {}) do
    if sampling.NUMBERS[part] then
      parts[#parts + 1] = part
      names[#names + 1] = '_' .. part
      if part == 'cgroup' then names[#names + 1] = '_container' end
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
  return setmetatable({
    name = name, list = list, context = context, names = names, size = size, parts = parts, strings = texts(list),
  }, View)
end

--- Returns a view type for events of several classes, such as the second events of pairs. Each event is read with the
--- view of its own class.
---@param view_of fun(class: integer): View
---@return ffi.ctype* type
function views.any(view_of)
  local readers = {} -- by class
  local function find(ev, k)
    local class = event_of(ev).class
    readers[class] = view_of(class).index
    return readers[class](ev, k)
  end
  for class = 0, C.EVENT_CLASSES - 1 do readers[class] = find end -- filled completely so that it stays an array
  return opaque(function(ev, k) return readers[event_of(ev).class](ev, k) end)
end

return views
