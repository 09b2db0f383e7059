-- SPDX-License-Identifier: GPL-2.0-only
--- Events with typed arguments: tp_btf:TRACEPOINT, fentry:FUNCTION, fexit:FUNCTION. Only programs can take them. Their
--- records have all arguments that are numbers, and what the profiler reads of the structures to which these point.
local access = require 'bpf.pointers.access'
local bit = require 'bit'
local chains = require 'bpf.pointers.chains'
local diagnostic = require 'bindings.base.diagnostic'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local perf_events = require 'bindings.view.perf_events'
local views = require 'bindings.view.views'

local C = ffi.C
local typed_events = {}

local FIRST_FIELD, MAX_RECORD = 8, 1024 -- bytes
local TEXT = 128 -- bytes of a text behind a pointer
local MAX_NAMES = 64 -- enumerators that are printed as names
local MOST_EVENTS = 200 -- of a selector with wildcards
local MOST_FUNCTIONS = 1000 -- that one program is attached to

--- What programs must know of an event.
---@class TypedEvent
---@field id? integer BTF id of what they are attached to
---@field attach? integer enum bpf_attach_type
---@field module? string whose types have the id; nil: the kernel's
---@field functions? ManyFunctions that one program is attached to, in place of these
---@field from table<string, ArgumentField> by field
---@field misses? Misses

local FUNC = 'func' -- field of one of many functions: which one it is

local by_list = setmetatable({}, { __mode = 'k' }) -- by the fields of an event

--- Returns what programs must know of an event; nil: its arguments have no types.
---@param event { list?: Field[] }
---@return TypedEvent?
function typed_events.of(event) return by_list[event.list] end

--- Returns the chains that are read of an event.
local function chains_of(set, one)
  local list = { unpack(chains.of(set.owner)) }
  chains.of_text(list, one.text)
  return list
end

--- Returns whether a probe is one of many, or its arguments are read by name.
local function has_names(set, one)
  if set.is_recording or one.args or not one.name:find '^[%w_.:*?%[%]]+$' then return false end
  if one.name:find '[*?[]' then return true end
  if not access.has_function(one.name) then return false end
  local prototype = access.prototype(access.system(one.system), one.name)
  for _, chain in ipairs(chains_of(set, one)) do
    if not chain.is_loose and chain.words[1] and access.argument(prototype, chain.words[1]) then return true end
  end
  return false
end

--- Returns whether a selector is one of these events: also a probe of functions, if it is one of many, or its arguments
--- are read by name.
---@param set table the event set
---@param one Selector
---@return boolean
function typed_events.is_one(set, one)
  if one.kind ~= 'event' then return false end
  return access.is_system(one.system) or access.PROBES[one.system] ~= nil and has_names(set, one)
end

local function refuse(prototype, chain, mistake)
  local message = ('%s: %s'):format(prototype.what, mistake.message)
  if chain.text then
    local column = chain.columns[mistake.word]
    local what = chain.text:find '^[%w_]+:' and 'event' or 'expression'
    failure.usage('%s', diagnostic.caret(diagnostic.new(what, chain.text, column, mistake.message, mistake.hint)))
  end
  failure.usage('%s%s%s', chain.place or '', message, mistake.hint and '; ' .. mistake.hint or '')
end

--- Returns the field with the address of the function, which is printed as its name.
local function function_field()
  return { name = FUNC, type = 'void *', size = 8, elem_size = 8, count = 1, flags = C.FIELD_POINTER,
    conversion = '%ps' }
end

--- Returns whether chains begin with a word.
local function has_word(list, word)
  for _, chain in ipairs(list) do
    if chain.words[1] == word then return true end
  end
  return false
end

--- Returns the fields of an event, not yet placed, with where programs find them. is_function: one of many functions.
local function fields_of(prototype, list, is_function)
  local fields, from, known, misses = {}, {}, {}, {}
  local function add(words, chain)
    local name = table.concat(words, '.')
    if known[name] then return end
    local found, mistake = access.follow(prototype, words)
    local field
    if found then field, mistake = access.field(words, found) end
    if field then
      known[name], from[name], fields[#fields + 1] = true, access.source(field, found, misses), field
    elseif chain and not chain.is_loose then
      refuse(prototype, chain, mistake)
    end
  end
  local function add_field(field, source)
    known[field.name], from[field.name], fields[#fields + 1] = true, source, field
  end
  --- Adds what is behind the pointer that a chain leads to.
  local function add_behind(chain)
    local name = table.concat(chain.words, '.')
    local pointer = from[name]
    if not pointer or not pointer.load then return end
    if chain.reads == 'text' then
      local of = views.text_field(name)
      if known[of] then return end
      return add_field({ name = of, label = '*' .. name, type = 'char[]', size = TEXT, elem_size = 1, count = TEXT,
        flags = C.FIELD_ARRAY + C.FIELD_STRING }, access.text_source(pointer, TEXT))
    end
    local number, offset = access.user_number(chain.reads)
    if not number then
      return chain.is_loose or refuse(prototype, chain, { word = #chain.words, message = offset })
    end
    local is_known = { size = 1, elem_size = 1, count = 1, flags = 0, type = 'bool', is_hidden = true }
    number.name, is_known.name = views.user_field(chain.reads, name)
    number.label = ('%s *%s'):format(chain.reads, name)
    if known[number.name] then return end
    local source, source_known = access.user_source(pointer, offset, number, is_known)
    add_field(number, source)
    add_field(is_known, source_known)
  end
  if is_function and has_word(list, FUNC) then add_field(function_field(), access.FUNCTION) end
  for _, name in ipairs(prototype.names) do
    if access.is_loaded(prototype, name) then add { name } end
  end
  for _, chain in ipairs(list) do
    if #chain.words > 0 and from[chain.words[1]] ~= access.FUNCTION and access.argument(prototype, chain.words[1]) then
      add(chain.words, chain)
      if chain.reads then add_behind(chain) end
    end
  end
  return fields, from, misses
end

--- Gives each field a place, the widest elements first.
local function place(prototype, fields)
  local sorted, at = { unpack(fields) }, FIRST_FIELD
  for i, field in ipairs(sorted) do field.order = i end
  table.sort(sorted, function(one, other)
    if one.elem_size ~= other.elem_size then return one.elem_size > other.elem_size end
    return one.order < other.order
  end)
  for _, field in ipairs(sorted) do
    field.offset, at = at, at + field.size
  end
  if at > MAX_RECORD then failure.usage('%s: its fields have more than %d bytes', prototype.what, MAX_RECORD) end
end

--- Returns how a field is printed: a conversion and its argument.
local function printed(field)
  local flags, value = field.flags, 'REC->' .. field.name
  if field.conversion then return field.conversion, value end
  if bit.band(flags, C.FIELD_STRING) ~= 0 then return '%s', value end
  if bit.band(flags, C.FIELD_ARRAY) ~= 0 then
    return '%s', ('__print_array(%s, %d, %d)'):format(value, field.count, field.elem_size)
  end
  if bit.band(flags, C.FIELD_POINTER) ~= 0 then return '0x%lx', value end
  if field.enumerators and #field.enumerators <= MAX_NAMES then
    local pairs_of = {}
    for i, one in ipairs(field.enumerators) do pairs_of[i] = ('{ %d, "%s" }'):format(one.value, one.name) end
    return '%s', ('__print_symbolic(%s, %s)'):format(value, table.concat(pairs_of, ', '))
  end
  local is_signed = bit.band(flags, C.FIELD_SIGNED) ~= 0
  return (field.size == 8 and '%ll' or '%') .. (is_signed and 'd' or 'u'), value
end

local function print_format(fields)
  local formats, values = {}, {}
  for _, field in ipairs(fields) do
    local conversion, value = printed(field)
    if not field.is_hidden then
      formats[#formats + 1], values[#values + 1] = ('%s=%s'):format(field.label or field.name, conversion), value
    end
  end
  return ('"%s"%s'):format(table.concat(formats, ' '), #values > 0 and ', ' .. table.concat(values, ', ') or '')
end

--- Returns the request for an event with these fields.
local function with_fields(what, system, fields, typed)
  local list, names = views.record_fields(), {}
  for i, field in ipairs(fields) do list[#list + 1], names[i] = field, field.name end
  by_list[list] = typed
  return {
    name = what, type = perf_events.TYPES.tracepoint, config = 0, system = system, list = list,
    print_fmt = print_format(fields), view_key = what .. ' ' .. table.concat(names, ' '),
  }
end

local function request(set, one, name, is_one_of_many)
  local system, what = access.system(one.system), (access.ALIASES[one.system] or one.system) .. ':' .. name
  local prototype = access.prototype(system, name, what)
  local fields, from, misses = fields_of(prototype, chains_of(set, one), is_one_of_many and system ~= 'tp_btf')
  place(prototype, fields)
  return with_fields(what, system, fields,
    { id = prototype.id, attach = prototype.attach, module = prototype.module, from = from, misses = misses })
end

--- Returns whether a profiler does the same for all of some functions: it asks which one it is by the field only, and
--- reads no arguments. Others show each function as an event.
local function treats_alike(set, one, names)
  local list = chains_of(set, one)
  if not has_word(list, FUNC) or has_word(list, 'probe') or has_word(list, '_event') then return false end
  local system = access.system(one.system)
  for _, name in ipairs(names) do
    local prototype = access.prototype(system, name)
    for _, chain in ipairs(list) do
      local word = not chain.is_loose and chain.words[1]
      if word and word ~= FUNC and access.argument(prototype, word) then return false end
    end
  end
  return true
end

--- Returns the request for one event of many functions.
local function request_of_many(one, names)
  local field, symbols = function_field(), {}
  field.offset = FIRST_FIELD
  for i, name in ipairs(names) do symbols[i] = name:match '[^:]*$' end
  return with_fields(one.system .. ':' .. one.name, access.system(one.system), { field },
    { functions = { names = symbols, returns = one.system == 'kretprobe' }, from = { [FUNC] = access.FUNCTION } })
end

--- Returns the requests for the events of a selector.
---@param set table the event set
---@param one Selector
---@return table[] requests for events:add(), with `name`
function typed_events.requests(set, one)
  if set.is_recording then
    failure.usage('%s: only events of this machine have typed arguments', one.system .. ':' .. one.name)
  end
  if not one.name:find '[*?[]' then return { request(set, one, one.name) } end
  local names, list = access.matching(access.system(one.system), one.name), {}
  if #names == 0 then failure.usage("no event matches '%s:%s'", one.system, one.name) end
  if #names <= MOST_FUNCTIONS and access.PROBES[one.system] and access.attaches_to_many()
    and treats_alike(set, one, names) then
    return { request_of_many(one, names) }
  end
  if #names > MOST_EVENTS then
    failure.usage("'%s:%s' matches %d events, which are more than %d", one.system, one.name, #names, MOST_EVENTS)
  end
  local left_out = {}
  for _, name in ipairs(names) do
    local is_attachable = access.is_attachable(access.prototype(access.system(one.system), name))
    if is_attachable then list[#list + 1] = request(set, one, name, true) else left_out[#left_out + 1] = name end
  end
  if #left_out > 0 then
    set.context.warn(('%s:%s: this kernel attaches no program to functions with that many arguments: %s'):format(
      one.system, one.name, table.concat(left_out, ', ')))
  end
  return list
end

--- Warns about reads that met a pointer which leads nowhere: what they gave is 0.
---@param run Run
function typed_events.finish(run)
  for _, event in ipairs(run.events.list) do
    local typed, parts = typed_events.of(event), {}
    local map = typed and typed.misses and typed.misses.map
    for i, name in ipairs(map and typed.misses or {}) do
      local n = tonumber(ffi.cast('const uint64_t *', map.bytes)[i - 1])
      if n > 0 then parts[#parts + 1] = ('%d read%s of %s'):format(n, n == 1 and '' or 's', name) end
    end
    if #parts > 0 then
      run.out:warn(('%s: %s: pointers were null or led nowhere, so that values are 0: %s'):format(run.name, event.name,
        table.concat(parts, ', ')))
    end
  end
end

--- Fails for an event that no program takes.
---@param list Event[]
function typed_events.check(list)
  for _, event in ipairs(list) do
    local one = event.route
    if typed_events.of(event) and one.by ~= 'BPF' and not event.is_derived then
      local why = one.why[#one.why]
      local is_function = not event.name:find '^tp_btf:'
      if is_function and why and why.reason:find 'rejects the BPF program: Operation not permitted' then
        failure.unavailable('%s: this kernel lets no BPF program trace functions (Operation not permitted)', event.name)
      end
      failure.unavailable('%s: only a BPF program can take it%s', event.name, why and ': ' .. why.reason or '')
    end
  end
end

return typed_events
