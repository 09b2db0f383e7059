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
local MAX_NAMES = 64 -- enumerators that are printed as names
local MOST_EVENTS = 200 -- of a selector with wildcards

--- What programs must know of an event.
---@class TypedEvent
---@field id integer BTF id of what they are attached to
---@field attach integer enum bpf_attach_type
---@field from table<string, ArgumentField> by field

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
  if set.is_recording or one.args or not one.name:find '^[%w_.*?%[%]]+$' then return false end
  if one.name:find '[*?[]' then return true end
  if not access.has_function(one.name) then return false end
  local prototype = access.prototype(access.system(one.system), one.name)
  for _, chain in ipairs(chains_of(set, one)) do
    if not chain.is_loose and access.argument(prototype, chain.words[1]) then return true end
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

--- Returns the fields of an event, not yet placed, with where programs find them.
local function fields_of(prototype, list)
  local fields, from, known = {}, {}, {}
  local function add(words, chain)
    local name = table.concat(words, '.')
    if known[name] then return end
    local found, mistake = access.follow(prototype, words)
    local field
    if found then field, mistake = access.field(words, found) end
    if field then
      known[name], from[name], fields[#fields + 1] = true, access.source(field, found), field
    elseif chain and not chain.is_loose then
      refuse(prototype, chain, mistake)
    end
  end
  for _, name in ipairs(prototype.names) do add { name } end
  for _, chain in ipairs(list) do
    if access.argument(prototype, chain.words[1]) then add(chain.words, chain) end
  end
  return fields, from
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
  for i, field in ipairs(fields) do
    local conversion, value = printed(field)
    formats[i], values[i] = ('%s=%s'):format(field.name, conversion), value
  end
  return ('"%s"%s'):format(table.concat(formats, ' '), #values > 0 and ', ' .. table.concat(values, ', ') or '')
end

local function request(set, one, name)
  local what = (access.ALIASES[one.system] or one.system) .. ':' .. name
  local prototype = access.prototype(access.system(one.system), name, what)
  local fields, from = fields_of(prototype, chains_of(set, one))
  place(prototype, fields)
  local list, names = views.record_fields(), {}
  for i, field in ipairs(fields) do list[#list + 1], names[i] = field, field.name end
  by_list[list] = { id = prototype.id, attach = prototype.attach, from = from }
  return {
    name = what, type = perf_events.TYPES.tracepoint, config = 0, system = access.system(one.system), list = list,
    print_fmt = print_format(fields), view_key = what .. ' ' .. table.concat(names, ' '),
  }
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
  if #names > MOST_EVENTS then
    failure.usage("'%s:%s' matches %d events, which are more than %d", one.system, one.name, #names, MOST_EVENTS)
  end
  for i, name in ipairs(names) do list[i] = request(set, one, name) end
  return list
end

--- Fails for an event that no program takes.
---@param list Event[]
function typed_events.check(list)
  for _, event in ipairs(list) do
    local one = event.route
    if typed_events.of(event) and one.by ~= 'BPF' and not event.is_derived then
      local why = one.why[#one.why]
      failure.unavailable('%s: only a BPF program can take it%s', event.name, why and ': ' .. why.reason or '')
    end
  end
end

return typed_events
