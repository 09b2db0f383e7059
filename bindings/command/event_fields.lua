-- SPDX-License-Identifier: GPL-2.0-only
--- The fields of events, as `profscript new` writes them into a script.
local failure = require 'bindings.base.failure'
local instance = require 'bindings.run.instance'
local options = require 'bindings.options.parser'
local runs = require 'bindings.run.run'
local scripts = require 'bindings.options.scripts'
local sessions = require 'bindings.run.session'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local event_fields = {}

---@class event_fields.Event
---@field name string
---@field alias string
---@field filter? string
---@field fields { name: string, type: string, kind: 'string'|'bytes'|'array'|'address'|'number', count: integer }[]

local function kind_of(field)
  if views.has(field, 'STRING') then return 'string' end
  if views.has(field, 'ARRAY') then return views.has(field, 'DYNAMIC') and 'bytes' or 'array' end
  return field.type:find('*', 1, true) and 'address' or 'number'
end

local function describe(event)
  local fields = {}
  for _, field in ipairs(event.list) do
    if not views.has(field, 'COMMON') then
      fields[#fields + 1] = { name = field.name, type = field.type, kind = kind_of(field), count = field.count }
    end
  end
  return { name = event.name, alias = event.alias, filter = event.filter, fields = fields }
end

local function look_up(session, opt, texts, max)
  local nobody, found, list = { name = 'new', profiler = {} }, scripts.new(sys, arg.data_dir), {}
  local set = instance.new(runs.new(session, nobody, opt, {}, found), nobody, opt).set
  for i, text in ipairs(texts) do set:select(text, i) end
  if #set.list > max then
    failure.usage('new: %d events are too many for one script: select at most %d', #set.list, max)
  end
  for i, event in ipairs(set.list) do list[i] = describe(event) end
  return list
end

--- Looks up events.
---@param texts string[] as -e takes them
---@param max integer more events are an error
---@param input? string recording with the events
---@return event_fields.Event[]
function event_fields.of(texts, max, input)
  local opt = assert(options.parse(options.explain_spec, nil, input and { '--input', input } or {}))
  return sessions.with(opt, look_up, opt, texts, max)
end

return event_fields
