-- SPDX-License-Identifier: GPL-2.0-only
--- Arguments of the kernel's tracepoints and functions by their names, and the members of what they point to: finds
--- them in the kernel's types (BTF), and how a program reads them.
local asm = require 'bpf.gen.asm'
local bit = require 'bit'
local btf = require 'bindings.bpf.btf'
local computed = require 'bpf.gen.computed'
local diagnostic = require 'bindings.base.diagnostic'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local glob = require 'bindings.base.glob'
local nearest = require 'bindings.base.nearest'
local program = require 'bpf.gen.program'
local source = require 'bpf.gen.source'
local sys = require 'bindings.base.sys'

local C = ffi.C
local access = {}

local KIND = btf.KIND
local MAX_ARRAY = 256 -- bytes of an array that are read
local SIGNED, BOOL = 1, 4 -- encodings of an integer

--- How events of a system are attached: enum bpf_attach_type. returns: the event also has the function's result.
access.SYSTEMS = {
  tp_btf = { attach = 23 },
  fentry = { attach = 24 },
  fexit = { attach = 25, returns = true },
}
--- Other names of these systems.
access.ALIASES = { kfunc = 'fentry', kretfunc = 'fexit' }
--- Probes of functions, which are these systems if their arguments are read by name.
access.PROBES = { kprobe = 'fentry', kretprobe = 'fexit' }

--- Returns whether the events of a system have arguments with types.
---@param system string?
---@return boolean
function access.is_system(system) return access.SYSTEMS[system] ~= nil or access.ALIASES[system] ~= nil end

--- Returns the key of access.SYSTEMS for a system, one of its other names, or a probe.
---@param system string
---@return string
function access.system(system) return access.ALIASES[system] or access.PROBES[system] or system end

--- Arguments of a tracepoint or function.
---@class Prototype
---@field what string "system:name"
---@field types Btf that have it
---@field module? string the module that it is in; nil: the kernel
---@field id integer BTF id of what a program is attached to
---@field attach integer enum bpf_attach_type
---@field arguments { name: string, type: integer }[] with `retval` at their end if the event has it
---@field names string[]

--- Where a program finds a value.
---@class Access
---@field argument integer from 0
---@field steps integer[] offsets of the pointers to follow, in bytes
---@field at? integer offset of the value in bits; nil: it is the argument itself
---@field width integer bits of a bit field; 0: it is none
---@field type integer BTF id
---@field types Btf

local function kernel()
  local all, missing = btf.kernel()
  return all or failure.unavailable('%s', missing)
end

local function kind_of(t) return bit.band(bit.rshift(t.info, 24), 0x1f) end

--- Returns the names of the types of a kind that begin with a prefix, without it; those of a module without the
--- kernel's.
local function names_of(all, kind, prefix)
  local names, id = {}, C.btf_types_first(all.types)
  while true do
    local t = C.btf_types_at(all.types, id)
    if kind_of(t) == 0 then return names end
    if kind_of(t) == kind then
      local name = all:name_at(t.name_off)
      if name:sub(1, #prefix) == prefix then names[#names + 1] = name:sub(#prefix + 1) end
    end
    id = id + 1
  end
end

--- Returns the names of the loaded modules that have BTF.
local function modules()
  local list = {}
  for _, name in ipairs(sys.readdir(btf.FOLDER) or {}) do
    if name ~= 'vmlinux' and not name:find '^%.' then list[#list + 1] = name end
  end
  return list
end

local FUNCTIONS = { '/sys/kernel/tracing/', '/sys/kernel/debug/tracing/' }

--- Returns the functions that can be traced by name, and the modules that have some which match; nil: the kernel does
--- not say which.
local function traced_functions(matches)
  local text = sys.read(FUNCTIONS[1] .. 'available_filter_functions')
    or sys.read(FUNCTIONS[2] .. 'available_filter_functions')
  local traced, by_module = {}, {}
  for name, rest in (text or ''):gmatch '([^\n%s]+)([^\n]*)\n' do
    traced[name] = true
    local module = rest:match '%[(.-)%]'
    if module and matches(name) then by_module[module] = true end
  end
  if text then return traced, nearest.keys(by_module) end
end

--- Returns the names of the tracepoints or functions that match a glob, sorted, those of modules as 'MODULE:NAME'.
--- Functions are those that can be traced.
---@param system string key of access.SYSTEMS
---@param pattern string 'NAME' or 'MODULE:NAME'
---@return string[]
function access.matching(system, pattern)
  local only, plain = pattern:match '^([%w_]+):(.+)$'
  local is_function, matches, found, seen = system ~= 'tp_btf', glob.matcher(plain or pattern), {}, {}
  local traced, list
  if is_function then traced, list = traced_functions(matches) end
  list = only and { only } or list or modules()
  local function add(all, prefix)
    local names = is_function and names_of(all, KIND.FUNC, '') or names_of(all, KIND.TYPEDEF, 'btf_trace_')
    for _, name in ipairs(names) do
      if matches(name) and (not traced or traced[name]) and not seen[name] then
        seen[name], found[#found + 1] = true, prefix .. name
      end
    end
  end
  local all = kernel()
  if not only then add(all, '') end
  for _, module in ipairs(list) do
    all = btf.kernel(module)
    if all then add(all, module .. ':') end
  end
  table.sort(found)
  return found
end

--- Returns whether this kernel attaches one program to many functions.
---@return boolean
function access.attaches_to_many()
  local all = btf.kernel()
  return all ~= nil and all:find('bpf_kprobe_multi_link', KIND.STRUCT) ~= nil
end

--- Finds a type of the kernel or else of a module, by 'NAME' or 'MODULE:NAME'.
---@param name string
---@param kind integer
---@param prefix? string before the name
---@return integer? id
---@return Btf? types that have it
---@return string? module nil: the kernel
local function find(name, kind, prefix)
  local module, plain = name:match '^([%w_]+):(.+)$'
  local wanted, all = (prefix or '') .. (plain or name), btf.kernel()
  local id = all and not module and all:find(wanted, kind)
  if id then return id, all end
  for _, one in ipairs(all and (module and { module } or modules()) or {}) do
    local types = btf.kernel(one)
    id = types and types:find(wanted, kind)
    if id and id >= C.btf_types_first(types.types) then return id, types, one end
  end
end

--- Returns whether the BTF of the kernel or a module has a function.
---@param name string
---@return boolean
function access.has_function(name) return find(name, KIND.FUNC) ~= nil end

--- Returns what a program is attached to: its id, the types that have it, its module, and the id of a function with the
--- same arguments, whose names are known.
local function find_target(system, name)
  local all, plain = kernel(), name:match '^[%w_]+:(.+)$' or name
  if system ~= 'tp_btf' then
    local id, types, module = find(name, KIND.FUNC)
    if id then return id, types, module, id end
    failure.usage("%s:%s: the kernel's BTF has no function '%s'%s", system, name, name,
      nearest.hint(name, names_of(all, KIND.FUNC, '')))
  end
  local id, types, module = find(name, KIND.TYPEDEF, 'btf_trace_')
  if not id then
    failure.usage("%s:%s: the kernel's BTF has no tracepoint '%s'%s", system, name, name,
      nearest.hint(name, names_of(all, KIND.TYPEDEF, 'btf_trace_')))
  end
  return id, types, module, types:find('__traceiter_' .. plain, KIND.FUNC)
    or types:find('__bpf_trace_' .. plain, KIND.FUNC)
    or failure.unavailable("%s:%s: the kernel's BTF does not have the names of its arguments", system, name)
end

--- Returns the arguments of an event. Fails if there is no such event.
---@param system string key of access.SYSTEMS
---@param name string
---@param what? string how the event is named; default: "system:name"
---@return Prototype
function access.prototype(system, name, what)
  local how = access.SYSTEMS[system]
  local id, all, module, named = find_target(system, name)
  local proto = C.btf_types_at(all.types, named).type
  local first = system == 'tp_btf' and 1 or 0 -- without that of whoever attaches
  local t = C.btf_types_at(all.types, proto)
  local parameter = ffi.cast('const struct btf_param *', t + 1)
  local self = { what = what or system .. ':' .. name, types = all, module = module, id = id, attach = how.attach,
    arguments = {}, names = {} }
  for i = first, all:parameters(proto) - 1 do
    table.insert(self.arguments, { name = all:name_at(parameter[i].name_off), type = parameter[i].type })
  end
  if how.returns and t.type > 0 then table.insert(self.arguments, { name = 'retval', type = t.type }) end
  for i, one in ipairs(self.arguments) do self.names[i] = one.name end
  return self
end

--- Returns the number of an argument, from 0; nil: there is none.
function access.argument(prototype, name)
  for i, one in ipairs(prototype.arguments) do
    if one.name == name then return i - 1 end
  end
end

local FIRST_WITH_MANY = 6.006 -- the first kernel that attaches programs to functions with more than 6 arguments
local MOST_ARGUMENTS = 6

--- Returns whether programs can be attached to a function of this kernel.
---@param prototype Prototype
---@return boolean
function access.is_attachable(prototype)
  local n = #prototype.arguments - (access.argument(prototype, 'retval') and 1 or 0)
  return n <= MOST_ARGUMENTS or computed.release() >= FIRST_WITH_MANY
end

local LOADED = { [0] = true, [KIND.INT] = true, [KIND.STRUCT] = true, [KIND.UNION] = true } -- 0: void

--- Returns whether programs may load an argument: pointers to other pointers, functions and enumerations they may not.
---@param prototype Prototype
---@param name string
---@return boolean
function access.is_loaded(prototype, name)
  local all = prototype.types
  local t, kind = all:resolve(prototype.arguments[access.argument(prototype, name) + 1].type)
  if kind ~= KIND.PTR then return true end
  return LOADED[select(2, all:resolve(t.type))] or false
end

--- What is wrong with a word of a chain.
---@class AccessMistake
---@field word integer its number
---@field message string
---@field hint? string

--- Returns the type that a pointer points to, and the tag of the pointer, such as 'user' for one to a program's memory.
local function pointed_to(all, t)
  local tag
  local target = C.btf_types_at(all.types, t.type)
  while kind_of(target) == KIND.TYPE_TAG do
    tag = all:name_at(target.name_off)
    target = C.btf_types_at(all.types, target.type)
  end
  return t.type, tag
end

local function describe(all, t, kind)
  local name = all:name_at(t.name_off)
  return ('%s %s'):format(kind == KIND.UNION and 'union' or 'struct', name ~= '' and name or 'without a name')
end

--- Follows a chain of members: { 'prev', 'mm', 'total_vm' }.
---@param prototype Prototype
---@param words string[] the first one is an argument
---@param at? integer its offset in bits, if it is in memory
---@return Access? found
---@return AccessMistake? mistake
function access.follow(prototype, words, at)
  local all, argument = prototype.types, access.argument(prototype, words[1])
  local found = { argument = argument, steps = {}, at = at, width = 0, type = prototype.arguments[argument + 1].type,
    types = all }
  for i = 2, #words do
    local before = table.concat(words, '.', 1, i - 1)
    local t, kind, id = all:resolve(found.type)
    if kind == KIND.PTR then
      local target, tag = pointed_to(all, t)
      if tag == 'user' or tag == 'percpu' then
        return nil, { word = i, message = ("'%s' points to %s memory, which has no members here"):format(before,
          tag == 'user' and "a program's" or 'per-CPU') }
      end
      if found.at then table.insert(found.steps, found.at / 8) end
      found.at = 0
      t, kind, id = all:resolve(target)
    end
    if kind ~= KIND.STRUCT and kind ~= KIND.UNION or not found.at then
      return nil, { word = i, message = ("'%s' has no members"):format(before) }
    end
    local names, member = {}, nil
    for _, one in ipairs(all:members(id)) do
      names[#names + 1] = one.name
      if one.name == words[i] then member = one end
    end
    if not member then
      return nil, { word = i, message = ("%s has no member '%s'"):format(describe(all, t, kind), words[i]),
        hint = diagnostic.suggest(words[i], names) }
    end
    found.at, found.width, found.type = found.at + member.offset, member.width, member.type
  end
  return found
end

--- Returns the enumerators of a type in the order of their values; nil: it has none.
local function enumerators(all, t, kind)
  if kind ~= KIND.ENUM then return end
  local list, one = {}, ffi.cast('const struct btf_enum *', t + 1)
  for i = 0, bit.band(t.info, 0xffff) - 1 do
    list[i + 1] = { name = all:name_at(one[i].name_off), value = one[i].value }
  end
  return list
end

--- Returns what is known about a number: its field without a name and a place; nil: it is none.
local function number(all, id)
  local t, kind = all:resolve(id)
  local type_name = all:name_at(C.btf_types_at(all.types, id).name_off)
  local field = { size = t.size, elem_size = t.size, count = 1, flags = 0, type = type_name }
  if kind == KIND.INT then
    local encoding = bit.band(bit.rshift(ffi.cast('const uint32_t *', t + 1)[0], 24), 0xf)
    if bit.band(encoding, SIGNED) ~= 0 then field.flags = C.FIELD_SIGNED end
    field.is_bool = bit.band(encoding, BOOL) ~= 0
  elseif kind == KIND.PTR then
    field.size, field.elem_size, field.flags, field.type = 8, 8, C.FIELD_POINTER, 'void *'
  elseif kind == KIND.ENUM or kind == KIND.ENUM64 then
    field.flags, field.enumerators = kind == KIND.ENUM and C.FIELD_SIGNED or 0, enumerators(all, t, kind)
  else
    return
  end
  return (field.size == 1 or field.size == 2 or field.size == 4 or field.size == 8) and field or nil
end

--- Returns the field for what a chain leads to, without a place in the record.
---@param words string[]
---@param found Access
---@return Field? field
---@return AccessMistake? mistake
function access.field(words, found)
  local all, name = found.types, table.concat(words, '.')
  local field = number(all, found.type)
  local t, kind, id = all:resolve(found.type)
  if kind == KIND.ARRAY and found.at then
    local array = ffi.cast('const struct btf_array *', t + 1)
    field = number(all, array.type)
    if field then
      field.count = math.min(array.nelems, MAX_ARRAY / field.elem_size)
      field.size, field.type = field.count * field.elem_size, field.type .. '[]'
      field.flags = field.flags + C.FIELD_ARRAY + (all:is_char(array.type) and C.FIELD_STRING or 0)
      field.enumerators = nil
    end
  end
  if field and field.size > 0 then
    field.name = name
    return field
  end
  local hint
  if kind == KIND.STRUCT or kind == KIND.UNION then
    local names = {}
    for i, member in ipairs(all:members(id)) do names[i] = i <= 8 and member.name or nil end
    hint = ('write one of its members: %s'):format(table.concat(names, ', '))
  end
  return nil, { word = #words, message = ("'%s' is not a number, a text or an array of numbers"):format(name),
    hint = hint }
end

local NUMBERS = { u8 = 1, u16 = 2, u32 = 4, u64 = 8, s8 = 1, s16 = 2, s32 = 4, s64 = 8 }

--- Returns the field for a number of a program's memory, without a name, and its offset in bytes: of a type such as
--- 'u32', or 'struct sockaddr_in.sin_port'.
---@param type string
---@return Field? field
---@return integer|string offset or what is wrong with the type
function access.user_number(type)
  local size = NUMBERS[type]
  if size then
    return { size = size, elem_size = size, count = 1, flags = type:find '^s' and C.FIELD_SIGNED or 0,
      type = ('__%s'):format(type) }, 0
  end
  local name, path = type:match '^struct ([%w_]+)%.([%w_.]+)$'
  if not name then return nil, "a type is u8 to u64, s8 to s64, or 'struct NAME.MEMBER'" end
  local all = kernel()
  local id = all:find(name, KIND.STRUCT)
  if not id then return nil, ("the kernel's BTF has no struct '%s'"):format(name) end
  local words, prototype = { 'of' }, { types = all, arguments = { { name = 'of', type = id } } }
  for word in path:gmatch '[^.]+' do words[#words + 1] = word end
  local found, mistake = access.follow(prototype, words, 0)
  if mistake then return nil, mistake.message .. (mistake.hint and '; ' .. mistake.hint or '') end
  local field = found.width == 0 and #found.steps == 0 and number(all, found.type)
  if not field then return nil, ("'%s' is not a number"):format(path) end
  field.enumerators = nil
  return field, found.at / 8
end

-- Programs ---------------------------------------------------------------------------------------

--- Generates to = *(to + offset), extended with zeros.
local function load(a, size, to, offset)
  if offset > 32767 then
    a:alu('add', to, offset)
    offset = 0
  end
  a:load(size, to, to, offset)
end

--- Generates code that puts a bit field into a register.
local function load_bits(a, field, to, found)
  local size, last = 1, found.at + found.width - 1
  while math.floor(found.at / (8 * size)) ~= math.floor(last / (8 * size)) do size = size * 2 end
  load(a, size, to, math.floor(found.at / (8 * size)) * size)
  a:alu('lsh', to, 64 - found.at % (8 * size) - found.width)
  a:alu(bit.band(field.flags, C.FIELD_SIGNED) ~= 0 and 'arsh' or 'rsh', to, 64 - found.width)
  if field.size < 8 then a:extend(to, field.size * 8, false) end
end

--- Reads of an event that met a pointer which leads nowhere: names of fields, and how often that was.
---@class Misses
---@field [integer] string
---@field map? Descriptor uint64_t by number, from 0; nil: no program reads through pointers

local LAST = -4096 -- address of the kernel; the numbers after it are errors

--- Generates to = where a chain's last pointer leads. If one of them is null, an error or an address of a program, the
--- read is counted, to = 0, and the code goes on at `missed`. Uses r5.
local function follow(a, to, context, found, misses, index, missed)
  local good, count = a:new_label(), a:new_label()
  a:load(8, to, context, 8 * found.argument)
  for _, offset in ipairs(found.steps) do
    a:jump('s>', to, LAST, count)
    load(a, 8, to, offset)
  end
  a:jump('s<=', to, LAST, good)
  a:label(count)
  if index then
    misses.map = misses.map or program.mapped(8 * #misses, 'misses')
    a:map_value(5, misses.map, 8 * (index - 1))
    a:alu('mov', to, 1)
    a:atomic_add(8, 5, 0, to)
  end
  a:alu('mov', to, 0)
  a:go(missed)
  a:label(good)
end

--- Returns where the programs of an event find a field, as a source of fields knows it (bpf/gen/arguments.lua).
---@param field Field
---@param found Access
---@param misses Misses of the event, to which the field is added
---@return ArgumentField
function access.source(field, found, misses)
  local from, index = { found.argument }, nil
  if found.at then
    index = #misses + 1
    misses[index] = field.name
  end
  function from.load(a, size, to, context, at)
    if not found.at then
      a:load(8, to, context, 8 * found.argument)
      if size < 8 then a:extend(to, size * 8, false) end
      return
    end
    local done = a:new_label()
    -- Later pieces of an array, some of which are loaded into r5, are those of the same read.
    follow(a, to, context, found, misses, at == 0 and to ~= 5 and index or nil, done)
    if found.width > 0 then
      load_bits(a, field, to, found)
    else
      load(a, size, to, found.at / 8 + at)
    end
    a:label(done)
  end
  function from.address(a, to, context)
    local done = a:new_label()
    follow(a, to, context, found, misses, index, done)
    a:alu('add', to, found.at / 8)
    a:label(done)
  end
  return from
end

--- Where programs find the address of the function that they are attached to.
access.FUNCTION = { compute = function(a, to, first) a:load(8, to, asm.FRAME, first) end }

local MARKS = { unreadable = '<unreadable>', null = '<null>', cut = '...' }

--- Generates code that writes a text and its NUL to *(to + off). Uses r1.
local function write_text(a, to, off, text)
  local padded = text .. ('\0'):rep(8 - #text % 8)
  for at = 0, #padded - 1, 8 do
    a:value(1, ffi.cast('const uint64_t *', padded:sub(at + 1, at + 8))[0])
    a:store(8, to, off + at, 1)
  end
end

--- Returns where programs find the text at an address: in the kernel's memory, or in that of the program.
---@param pointer ArgumentField of the address
---@param size integer bytes of the field, at least 16
---@return ArgumentField
function access.text_source(pointer, size)
  local from = {}
  function from.write(a, to, off, _, context)
    local kernel_text, read, null, done = a:new_label(), a:new_label(), a:new_label(), a:new_label()
    pointer.load(a, 8, 3, context, 0)
    a:address(1, to, off)
    a:alu('mov', 2, size)
    a:jump('s<', 3, 0, kernel_text)
    a:call 'probe_read_user_str'
    a:go(read)
    a:label(kernel_text)
    a:call 'probe_read_kernel_str'
    a:label(read)
    local whole = a:new_label()
    a:jump('s<', 0, 0, null)
    a:jump('!=', 0, size, whole)
    a:value(1, ffi.cast('const uint32_t *', MARKS.cut .. '\0')[0])
    a:store(4, to, off + size - 4, 1)
    a:label(whole)
    a:go(done)
    a:label(null)
    local unreadable = a:new_label()
    pointer.load(a, 8, 3, context, 0)
    a:jump('!=', 3, 0, unreadable)
    write_text(a, to, off, MARKS.null)
    a:go(done)
    a:label(unreadable)
    write_text(a, to, off, MARKS.unreadable)
    a:label(done)
  end
  return from
end

--- Returns where programs find a number of a program's memory, and whether it could be read.
---@param pointer ArgumentField of the address
---@param offset integer bytes from there
---@param field Field
---@param known Field
---@return ArgumentField number
---@return ArgumentField is_known
function access.user_source(pointer, offset, field, known)
  local function write(a, to, off, _, context)
    pointer.load(a, 8, 3, context, 0)
    if offset > 0 then a:alu('add', 3, offset) end
    source.read_user(a, to, off, field.size, off + known.offset - field.offset)
  end
  return { write = write }, { write = function() end } -- it is written with the number
end

return access
