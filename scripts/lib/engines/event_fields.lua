-- SPDX-License-Identifier: GPL-2.0-only
--- The fields of events, as `profscript new` and `profscript stubs` write them into files.
local event_filter = require 'bindings.select.event_filter'
local failure = require 'bindings.base.failure'
local instance = require 'bindings.run.instance'
local options = require 'bindings.options.parser'
local runs = require 'bindings.run.run'
local scripts = require 'bindings.options.scripts'
local sessions = require 'bindings.run.session'
local string_fields = require 'bpf.pointers.string_fields'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'
local views = require 'bindings.view.views'

local event_fields = {}

---@class event_fields.Event
---@field name string
---@field alias string
---@field filter? string
---@field fields event_fields.Field[]
---@field view table names and strings that handlers can read
---@field texts table<string, boolean> see views.texts()

---@class event_fields.Field
---@field name string
---@field type string as in the format file
---@field kind 'string'|'bytes'|'array'|'address'|'number'
---@field count integer of an array
---@field unit? string 'ns', or where its numbers have names

--- What numbers of fields are that have no unit, by a part of their name.
local MEANINGS = {
  { '^nr_sector', 'sectors of 512 bytes' }, { '^sector$', 'number of a sector of 512 bytes' },
  { '^prev_state$', 'bits of a state' },
  { '^oldstate$', 'TCP state, see lib.names' },
  { '^newstate$', 'TCP state, see lib.names' },
  { '^ret$', 'result; negative: an error, see lib.names' },
  { '^sig$', 'signal, see lib.names' }, { '^[sd]addr', 'IP address, see lib.names' },
}

--- Returns the unit of a field, or what its numbers are.
---@param name string
---@return string? unit
function event_fields.unit(name)
  local unit = units.of_field(name)
  if unit then return unit end
  for _, one in ipairs(MEANINGS) do
    if name:find(one[1]) then return one[2] end
  end
end

local function kind_of(field)
  if views.has(field, 'STRING') then return 'string' end
  if views.has(field, 'ARRAY') then return views.has(field, 'DYNAMIC') and 'bytes' or 'array' end
  return field.type:find('*', 1, true) and 'address' or 'number'
end

local function describe(event)
  local fields = {}
  for _, field in ipairs(event.list) do
    if not views.has(field, 'COMMON') then
      fields[#fields + 1] = { name = field.name, type = field.type, kind = kind_of(field), count = field.count,
        unit = event_fields.unit(field.name) }
    end
  end
  return { name = event.name, alias = event.alias, filter = event.filter, fields = fields, view = event.view,
    texts = views.texts(event.fields) }
end

local function look_up(session, opt, texts, settings)
  local nobody, found, list = { name = settings.name, profiler = {} }, scripts.new(sys, arg.data_dir), {}
  local set = instance.new(runs.new(session, nobody, opt, {}, found), nobody, opt).set
  for _, text in ipairs(texts) do set:select(text) end
  if #set.list > (settings.max or math.huge) then
    failure.usage('%s: %d events are too many for one script: select at most %d', settings.name, #set.list,
      settings.max)
  end
  for i, event in ipairs(set.list) do
    event_filter.split(event, settings.input ~= nil) -- a mistake in it is told here, not when the events are opened
    list[i] = describe(event)
    list[i].strings = string_fields.names(set.catalog, event.name)
  end
  return list
end

--- Looks up events.
---@param texts string[] as -e takes them
---@param settings { name: string, max?: integer, input?: string } name: of the command, for messages; max: more events
--- are an error; input: recording with the events
---@return event_fields.Event[]
function event_fields.of(texts, settings)
  local input = settings.input
  local opt = assert(options.parse(options.explain_spec(), nil, input and { '--input', input } or {}))
  return sessions.with(opt, look_up, opt, texts, settings)
end

return event_fields
