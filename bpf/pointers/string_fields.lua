-- SPDX-License-Identifier: GPL-2.0-only
--- Strings behind pointers: which arguments of system calls point to strings or buffers, and the format of an event
--- whose records contain some of them. The string behind `filename` is the field `__filename_val`, of bytes if it is a
--- buffer. Linux 6.19 has fields of that name itself, and nothing needs to be added.
local access = require 'bpf.pointers.access'
local ffi = require 'ffi'
local buffers = require 'bpf.pointers.buffers'
local chains = require 'bpf.pointers.chains'
local failure = require 'bindings.base.failure'
local views = require 'bindings.view.views'

local C = ffi.C
local string_fields = {}

--- Returns the kind of tracepoint and the name in it, such as 'sys_enter' and 'openat'; nil for other events.
local function parts(system, name)
  if system ~= 'syscalls' then return end
  return name:match '^(sys_%a+)_(.+)$'
end

--- Returns how an argument is read as text; nil if it is no text.
local function text_of(call, field)
  local rule = buffers.rule(call, field.name)
  if rule then return { buffer = rule } end
  if field.type:match '^const char %*%s*const %*$' then return { is_list = true } end
  return buffers.is_string(call, field.name, field.type) and { is_list = false } or nil
end

--- Returns the arguments of a system call, and those that point to strings or to buffers whose end is known.
---@param catalog Catalog
---@param call string
---@return string[] arguments
---@return UserString[] strings
local function arguments_of(catalog, call)
  local arguments, strings, places, types = {}, {}, {}, {}
  local tp = catalog:tracepoint('syscalls', 'sys_enter_' .. call)
  for _, field in ipairs(tp and views.fields(tp) or {}) do
    if not views.has(field, 'COMMON') and not views.has(field, 'DYNAMIC') and field.name ~= '__syscall_nr' then
      local one = text_of(call, field)
      if one then
        one.name, one.field, one.argument = field.name, views.text_field(field.name), #arguments
        strings[#strings + 1] = one
      end
      places[field.name], types[field.name] = #arguments, field.type
      arguments[#arguments + 1] = field.name
    end
  end
  for i = #strings, 1, -1 do
    local rule = strings[i].buffer
    local length = rule and rule.length
    strings[i].length, strings[i].is_int = places[length], rule and (types[length] or ''):match 'int$' ~= nil
    strings[i].flags, strings[i].action = rule and places[rule.flags], rule and rule.action and places[rule.action[1]]
    if rule and not (strings[i].length or rule.bytes) then table.remove(strings, i) end
  end
  return arguments, strings
end

--- Returns the numbers behind arguments that a profiler reads.
---@param owner Instance
---@param arguments string[]
---@param fields table<string, Field> that the records have already
---@return UserNumber[]
local function numbers_of(owner, arguments, fields)
  local places, numbers, seen = {}, {}, {}
  for i, name in ipairs(arguments) do places[name] = i - 1 end
  for _, chain in ipairs(chains.of(owner)) do
    local name = chain.words[1]
    local is_number = chain.reads and chain.reads ~= 'text' and #chain.words == 1 and places[name]
    local number, is_known = views.user_field(chain.reads or '', name or '')
    if is_number and not fields[number] and not seen[number] then
      local field, offset = access.user_number(chain.reads)
      if not field then failure.usage('%s%s', chain.place or '', offset) end
      seen[number] = true
      numbers[#numbers + 1] = { name = name, type = chain.reads, argument = places[name], field = number,
        known = is_known, size = field.size, is_signed = views.has(field, 'SIGNED'), offset = offset }
    end
  end
  return numbers
end

--- Returns the text of a format with more fields.
local function extended(text, strings, numbers, at)
  local fields, print_fmt, print_args = {}, '', ''
  for i, one in ipairs(strings) do
    fields[i] = ('\tfield:__data_loc %s[] %s;\toffset:%d;\tsize:4;\tsigned:0;\n')
      :format(one.buffer and 'u8' or 'char', one.field, at + 4 * (i - 1))
    print_fmt = ('%s, *%s: \\"%%s\\"'):format(print_fmt, one.name)
    print_args = ('%s, __get_str(%s)'):format(print_args, one.field)
  end
  at = at + 4 * #strings
  for _, one in ipairs(numbers) do
    at = math.ceil(at / 8) * 8
    local line = '\tfield:%s %s;\toffset:%d;\tsize:%d;\tsigned:%d;\n'
    local kind = ('%s%d'):format(one.is_signed and 's' or 'u', 8 * one.size)
    fields[#fields + 1] = line:format(kind, one.field, at, one.size, one.is_signed and 1 or 0)
    fields[#fields + 1] = line:format('u8', one.known, at + one.size, 1, 0)
    print_fmt = ('%s, %s *%s: %%ll%s'):format(print_fmt, one.type, one.name, one.is_signed and 'd' or 'u')
    print_args = ('%s, (%s)REC->%s'):format(print_args, one.is_signed and 's64' or 'u64', one.field)
    at = at + one.size + 1
  end
  local head, fmt, args = text:match '^(.-)(\nprint fmt: ".-)(".*)$'
  if not head then return end
  return head .. table.concat(fields) .. fmt .. print_fmt .. args:gsub('%s*$', '') .. print_args .. '\n'
end

--- A number of the program's memory, at an address in an argument.
---@class UserNumber
---@field name string of the argument
---@field type string
---@field argument integer from 0
---@field offset integer bytes from the address
---@field field string
---@field known string field that is 0 if it could not be read
---@field size integer
---@field is_signed boolean

--- What the records of an event contain beside the kernel's fields.
---@class UserStrings
---@field tracepoint string 'sys_enter' or 'sys_exit'
---@field call string name of the system call
---@field arguments string[]
---@field strings UserString[]
---@field numbers UserNumber[]
---@field loaded? table what must live as long as the event: its program, the array of events, and the link

local by_tracepoint = setmetatable({}, { __mode = 'k' }) -- of the formats that were extended

--- Adds the wanted strings of a live event to its format. Returns nil if there are none.
---@param catalog Catalog
---@param system string
---@param name string
---@param tp ffi.cdata* struct tracepoint *
---@param owner Instance the profiler that requests the event
---@return UserStrings?
function string_fields.add(catalog, system, name, tp, owner)
  local kind, call = parts(system, name)
  if kind ~= 'sys_enter' and kind ~= 'sys_exit' then return end
  local known = by_tracepoint[catalog] or {}
  by_tracepoint[catalog] = known
  if known[name] then return known[name] end
  local list, fields = views.fields(tp)
  local arguments, all = arguments_of(catalog, call)
  local strings, stop, wanted = {}, 0, owner:wanted_strings()
  for _, one in ipairs(all) do
    if wanted[one.name] and not fields[one.field] then strings[#strings + 1] = one end
  end
  local numbers = numbers_of(owner, arguments, fields)
  if #strings + #numbers == 0 then return end
  for _, field in ipairs(list) do stop = math.max(stop, field.offset + field.size) end
  local size, err = ffi.new 'size_t[1]', ffi.new 'struct error'
  local text = extended(ffi.string(C.tracepoint_text(tp, size)), strings, numbers, stop)
  if not text or C.tracepoint_set_text(tp, text, err) < 0 then
    failure.raise('%s:%s: its format cannot have strings: %s', system, name, ffi.string(err.text))
  end
  known[name] = { tracepoint = kind, call = call, arguments = arguments, strings = strings, numbers = numbers }
  return known[name]
end

--- Returns the names of the arguments of an event's system call that point to strings.
---@param catalog Catalog
---@param event string "sys:name"
---@return string[]
function string_fields.names(catalog, event)
  local kind, call = parts(event:match '^(.-):(.*)$')
  local found = {}
  for i, one in ipairs(kind and select(2, arguments_of(catalog, call)) or {}) do found[i] = one.name end
  return found
end

return string_fields
