-- SPDX-License-Identifier: GPL-2.0-only
--- The JSON Schema of the lines that a run prints with --json: the rows of its tables, its records and events.
local addresses = require 'bindings.print.addresses'
local failure = require 'bindings.base.failure'
local encode = require 'bindings.base.json'
local printer = require 'bindings.print.printer'
local tables = require 'bindings.base.table'
local units = require 'bindings.base.units'
local views = require 'bindings.view.views'

local json, object, has = encode.value, encode.object, views.has
local schema = {}

local DRAFT = 'http://json-schema.org/draft-07/schema#'

-- 64-bit integers beyond 2^53, which most readers of JSON would round, are text.
local DEFINITIONS = [[{"integer":{"anyOf":[{"type":"integer","minimum":-9007199254740992,"maximum":9007199254740992},]]
  .. [[{"type":"string","pattern":"^-?[0-9]{16,20}$"}]},]]
  .. [["number":{"anyOf":[{"$ref":"#/definitions/integer"},{"type":"number"},{"type":"null"}]},]]
  .. [["address":{"type":"string","pattern":"^0x[0-9a-f]{1,16}$"},]]
  .. [["value":{"anyOf":[{"type":["number","string","boolean","null"]},]]
  .. [[{"type":"array","items":{"$ref":"#/definitions/value"}}]}}]]

local function ref(name) return ('{"$ref":"#/definitions/%s"}'):format(name) end

local declared -- what the script will print, in the order of its start()

--- Notes from now on which tables and records are declared.
---@param run Run
function schema.collect(run)
  declared = {}
  if run.query then failure.usage('%s: --dry-run=schema does not work with --query', run.name) end
  tables.listen(function(name, names, spec)
    declared[#declared + 1] = { name = name, names = names, spec = spec }
  end)
end

--- Returns the schema of an object.
---@param kind 'table'|'event' the member with its name
---@param members string[][] name and schema of each member
---@param extra? string[][] those that some objects lack
local function one(kind, name, members, extra)
  local properties, required = { { kind, object { { 'const', json(name) } } } }, { kind }
  for _, member in ipairs(members) do
    properties[#properties + 1], required[#required + 1] = member, member[1]
  end
  for _, member in ipairs(extra or {}) do properties[#properties + 1] = member end
  return object {
    { 'type', json 'object' }, { 'required', json(required) }, { 'properties', object(properties) },
    { 'additionalProperties', 'false' },
  }
end

local function of_column(column)
  local unit = units.of(column)
  local is_number = column.metric == 'counter' or column.metric == 'gauge' or column.scale ~= nil
    or unit ~= nil or (column.format or ''):find '%%[%d.]*[dfg]' ~= nil
  local value = ref(is_number and unit ~= 'address' and 'number' or 'value')
  return unit and object { { 'allOf', '[' .. value .. ']' }, { 'description', json('unit: ' .. unit) } } or value
end

local function of_table(found)
  local members, columns = { { 'time', ref 'number' } }, {}
  for _, column in ipairs(found.spec.columns) do columns[column.name] = column end
  for i = 2, #found.names do members[i] = { found.names[i], of_column(columns[found.names[i]]) } end
  return one('table', found.name, members)
end

local function of_record(found)
  local members = {}
  for i, name in ipairs(found.names) do members[i] = { name, ref 'value' } end
  return one('event', found.name, members)
end

--- Returns the schema of an event's field.
local function of_field(field, is_address)
  if is_address then return ref 'address' end
  if has(field, 'STRING') or has(field, 'DYNAMIC') then return object { { 'type', json 'string' } } end
  if has(field, 'ARRAY') then return ref 'value' end
  return ref 'integer'
end

local BASE = { host = 'value', cpu = 'integer', pid = 'integer', tid = 'integer', comm = 'value' } -- others: numbers

local function of_event(event)
  local order, names = printer.columns(event)
  local fields, is_address, members, extra = {}, addresses.of(event), {}, {}
  for _, name in ipairs(names) do fields[name.key] = of_field(event.fields[name.field], is_address[name.field]) end
  for _, name in ipairs(order) do
    if name ~= 'stack' then members[#members + 1] = { name, fields[name] or ref(BASE[name] or 'number') } end
  end
  extra[1] = { 'stack', object { { 'type', json 'array' }, { 'items', object { { 'type', json 'string' } } } } }
  for name in pairs(printer.extra) do extra[#extra + 1] = { name, ref 'value' } end
  table.sort(extra, function(a, b) return a[1] < b[1] end)
  return one('event', event.name, members, extra)
end

--- Returns the schema. A user's code may print more than is declared: any row or record.
---@param run Run
---@return string line
function schema.text(run)
  local kinds, is_complete = {}, run.is_shipped
  for _, found in ipairs(declared) do
    kinds[#kinds + 1] = (found.spec and of_table or of_record)(found)
    is_complete = is_complete and found.name ~= 'print' -- of one-liners
  end
  for _, event in ipairs(run.printed_events()) do kinds[#kinds + 1] = of_event(event) end
  if not is_complete then
    kinds[#kinds + 1] = object { { 'type', json 'object' }, { 'additionalProperties', ref 'value' } }
  end
  if #kinds == 0 then kinds[1] = 'false' end
  return object {
    { '$schema', json(DRAFT) }, { 'title', json(('a line of profscript %s --json'):format(run.name)) },
    { 'anyOf', '[' .. table.concat(kinds, ',') .. ']' }, { 'definitions', DEFINITIONS },
  } .. '\n'
end

return schema
