-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript stubs`: writes what editors and luacheck must know about scripts. The definitions of lib.*, session and
--- out are made from the annotations in the source when profscript is built; those of events and options here.
local environment = require 'bindings.options.environment'
local event_fields = require 'lib.engines.event_fields'
local nearest = require 'bindings.base.nearest'
local options = require 'bindings.options.parser'
local selector = require 'bindings.select.selector'
local sys = require 'bindings.base.sys'
local types = require('bindings.options.types').types

local stubs = {}

local FOLDER = '.profscript'

local LUARC = [[
{
  "$schema": "https://raw.githubusercontent.com/LuaLS/vscode-lua/master/setting/schema.json",
  "runtime.version": "LuaJIT",
  "runtime.builtin": { "debug": "disable", "ffi": "disable", "jit": "disable", "jit.profile": "disable",
    "jit.util": "disable" },
  "workspace.library": [".profscript"]
}
]]

--- The Lua types of fields by their kind.
local KINDS = { string = 'string', bytes = 'string', array = 'integer[]', address = 'integer64', number = 'integer' }

local KEYWORDS = {}
for word in ('and break do else elseif end false for function goto if in local nil not or repeat return then true until'
  .. ' while'):gmatch '%l+' do
  KEYWORDS[word] = true
end

local function is_name(text) return text:find '^[%a_][%w_]*$' and not KEYWORDS[text] end

local function word(text) return (text:gsub('[^%w_]', '_')) end

--- Returns the file of an event's definition, without ".lua".
local function file_of(name) return word(name:match '^([^:]+):' or 'perf') end

--- Returns the class of the `ev` of an event's handler.
---@param name string the event's
---@return string
function stubs.class(name) return ('Ev.%s.%s'):format(file_of(name), word(name:match ':(.+)$' or name)) end

--- Returns the definition of an event's class.
local function event_text(event)
  local lines = { ('--- %s\n---@class %s : Ev\n'):format(event.name, stubs.class(event.name)) }
  for _, field in ipairs(event.fields) do
    if field.name:sub(1, 1) ~= '_' then -- those are in Ev
      local name = is_name(field.name) and field.name or ("['%s']"):format(field.name)
      lines[#lines + 1] = ('---@field %s %s %s%s\n'):format(name, KINDS[field.kind], field.type,
        field.unit and ': ' .. field.unit or '')
    end
  end
  return table.concat(lines)
end

--- Returns the definitions of events, by the name of their file.
---@param events event_fields.Event[]
---@return table<string, string>
function stubs.events(events)
  local parts, handlers, seen = {}, {}, {}
  for _, event in ipairs(events) do
    local file = file_of(event.name)
    if not seen[event.name] then
      seen[event.name] = true
      parts[file] = parts[file] or { '---@meta\n' }
      handlers[file] = handlers[file] or { '---@class Handlers\n' }
      table.insert(parts[file], event_text(event))
      table.insert(handlers[file], ("---@field ['%s'] fun(ev: %s)\n"):format(event.name, stubs.class(event.name)))
    end
  end
  local texts = {}
  for file, list in pairs(parts) do
    texts[file] = table.concat(list, '\n') .. '\n' .. table.concat(handlers[file])
  end
  return texts
end

--- Returns the type of an option's value in `opt`.
local function option_type(option)
  local kind = types[option.type].lua
  if option.type == 'event' then return 'Event[][]' end
  if option.values then return "'" .. table.concat(option.values, "'|'") .. "'" end
  if kind == 'cdata' then return 'integer64' end
  if kind == 'table' then return 'any[]' end
  return kind
end

--- Returns the definitions of the common options.
---@return string
function stubs.options()
  local spec = assert(options.declare { attributes = nearest.keys(selector.attributes) })
  local lines = { '---@meta\n', '---@class Options' }
  for _, option in ipairs(spec.list) do
    local is_optional = option.default == nil and option.type ~= 'event'
    lines[#lines + 1] = ('---@field %s %s%s -%s: %s'):format(option.name, option_type(option),
      is_optional and '?' or '', option.short or '-' .. option.long, option.help)
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Returns the configuration of luacheck: the globals that a script has.
---@return string
function stubs.luacheckrc()
  local globals, lines = environment.new(), {}
  for _, name in ipairs(nearest.keys(globals)) do
    local value = rawget(globals, name)
    if type(value) == 'table' and name ~= '_G' then
      lines[#lines + 1] = ("  %s = { fields = { '%s' } },"):format(name, table.concat(nearest.keys(value), "', '"))
    else
      lines[#lines + 1] = ('  %s = {},'):format(name)
    end
  end
  return "-- The globals of profscript's scripts.\nstds.profscript = { read_globals = {\n" .. table.concat(lines, '\n')
    .. "\n} }\nstd = 'profscript'\nmax_line_length = false\n"
end

local function write_file(path, text)
  local file, message = sys.create(path)
  if not file then return nil, message end
  local ok
  ok, message = file:write(text)
  local closed, close_message = file:close()
  if not ok or not closed then return nil, ('%s: %s'):format(path, message or close_message) end
  return true
end

--- Without -e: all tracepoints and records.
local ALL = { '*:*', 'misc:*' }

--- Writes the files.
---@param folder string
---@param settings { name: string, events: string[], input?: string } name: of the command, for messages; events: as -e
--- takes them; none: all
---@return { written: string[], kept: string[], events: integer }? result kept: files that existed
---@return string? message
function stubs.write(folder, settings)
  local texts = #settings.events > 0 and settings.events or ALL
  local events = event_fields.of(texts, { name = settings.name, input = settings.input })
  local base = ('%s/%s'):format(folder, FOLDER)
  for _, path in ipairs { base, base .. '/lib', base .. '/events' } do
    local ok, message = sys.mkdir(path)
    if not ok then return nil, ('%s: %s'):format(path, message) end
  end
  for _, name in ipairs(sys.readdir(base .. '/events') or {}) do
    if name:find '%.lua$' then os.remove(('%s/events/%s'):format(base, name)) end
  end
  local files = { ['options.lua'] = stubs.options() }
  for name, text in pairs(require 'lib.engines.stub_files') do files[name] = text end
  for name, text in pairs(stubs.events(events)) do files[('events/%s.lua'):format(name)] = text end
  for _, name in ipairs(nearest.keys(files)) do
    local ok, message = write_file(('%s/%s'):format(base, name), files[name])
    if not ok then return nil, message end
  end
  local result = { written = {}, kept = {}, events = #events }
  for _, own in ipairs { { '.luarc.json', LUARC }, { '.luacheckrc', stubs.luacheckrc() } } do
    local path = ('%s/%s'):format(folder, own[1])
    local exists = sys.read(path)
    if exists and exists ~= own[2] then
      table.insert(result.kept, path)
    else
      local ok, message = write_file(path, own[2])
      if not ok then return nil, message end
      table.insert(result.written, path)
    end
  end
  table.insert(result.written, base)
  return result
end

return stubs
