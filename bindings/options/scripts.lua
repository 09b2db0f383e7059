-- SPDX-License-Identifier: GPL-2.0-only
--- Finds profiler files by name, loads them and checks the table they return. A file that is not
--- right gives one line that says where; nothing a script does while loading ends the host.
local bit = require 'bit'
local environment = require 'bindings.options.environment'
local failure = require 'bindings.base.failure'
local globals = require 'bindings.options.globals'
local nearest = require 'bindings.base.nearest'
local options = require 'bindings.options.parser'
local selector = require 'bindings.select.selector'

--- The system calls Lua lacks, passed in by the host.
---@class scripts.Sys
---@field readdir fun(path: string): string[]?, string? names in a directory
---@field stat fun(path: string): { mode: integer, uid: integer, isdir: boolean }?, string?
---@field getenv fun(name: string): string?

--- A loaded profiler.
---@class scripts.Script
---@field name string
---@field path string
---@field given? string how the user named the file, if by its path
---@field profiler table what the file returned
---@field is_shipped boolean it came with profscript: the events that it names are spelled right
---@field spec opt.Spec

---@class scripts.Scripts
---@field sys scripts.Sys
---@field dirs string[] in search order
---@field shipped string what the paths of those begin with that come with profscript
local scripts = {}
scripts.__index = scripts

local ALSO = { ['event-care'] = 'event-lost' } -- perf-prof's names for some
local FILE_OF = { ['bpf:kvm_exit'] = 'bpf-kvm_exit' } -- names that a portable file name cannot hold

local WORLD_WRITABLE = 2 -- mode bit o+w

-- What a profiler's table may hold, and what it must.
local KEYS = {
  summary = 'string',
  description = 'string',
  examples = 'table',
  options = 'table',
  positional = 'table',
  unsupported = 'table',
  attributes = 'table',
  everywhere = 'boolean', -- -p, -t and a workload choose among the events of all CPUs
  events = 'boolean', -- false: start() does all of the work and returns nothing
  start = 'function',
}
local REQUIRED = { 'summary', 'start' }

---@param sys scripts.Sys
---@param datadir string where the shipped scripts are
---@return scripts.Scripts
function scripts.new(sys, datadir)
  local dirs = {}
  for dir in (sys.getenv 'PROFSCRIPT_PATH' or ''):gmatch '[^:]+' do
    dirs[#dirs + 1] = dir
  end
  local config, home = sys.getenv 'XDG_CONFIG_HOME', sys.getenv 'HOME'
  if config and config ~= '' then
    dirs[#dirs + 1] = config .. '/profscript'
  elseif home and home ~= '' then
    dirs[#dirs + 1] = home .. '/.config/profscript'
  end
  dirs[#dirs + 1] = datadir .. '/scripts/profilers'
  dirs[#dirs + 1] = datadir .. '/scripts/commands'
  return setmetatable({ sys = sys, dirs = dirs, shipped = datadir .. '/scripts/' }, scripts)
end

--- The name of the profiler that a file holds.
---@param file string without its folders
---@return string
local function name_of(file)
  local stem = file:gsub('%.lua$', '')
  for name, of in pairs(FILE_OF) do
    if stem == of then return name end
  end
  return stem
end

--- One line of an error raised by the script, with the whole path: Lua shortens long ones to "...".
---@param path string
---@param message any
---@return string
local function one_line(path, message)
  local first = tostring(message):match('^[^\n]*'):gsub(':%s*$', '')
  local shortened, line, text = first:match '^(.-):(%d+): (.*)$'
  if not shortened then return ('%s: %s'):format(path, first) end
  if shortened:sub(1, 3) == '...' and path:sub(-(#shortened - 3)) == shortened:sub(4) then shortened = path end
  return ('%s:%s: %s'):format(shortened, line, text)
end

---@param profiler any
---@return string? message what is wrong with the table
local function check_table(profiler)
  if type(profiler) ~= 'table' then
    return ('the file returns a %s, not a table with summary and start'):format(type(profiler))
  end
  for _, key in ipairs(nearest.keys(profiler)) do
    local value = profiler[key]
    if not KEYS[key] then return ("unknown key '%s'%s"):format(key, nearest.hint(key, nearest.keys(KEYS))) end
    if type(value) ~= KEYS[key] then
      return ("'%s' is a %s, not a %s"):format(key, type(value), KEYS[key])
    end
  end
  for key in pairs(profiler) do
    if type(key) ~= 'string' then return ("unknown key '%s'"):format(tostring(key)) end
  end
  for _, key in ipairs(REQUIRED) do
    if profiler[key] == nil then return ("'%s' is missing"):format(key) end
  end
  for _, name in ipairs(profiler.attributes or {}) do
    if not selector.attributes[name] then
      return ("attributes: events have no attribute '%s'%s"):format(tostring(name),
        nearest.hint(tostring(name), nearest.keys(selector.attributes)))
    end
  end
  if profiler.summary:find '\n' then return "'summary' is more than one line" end
  for i, example in ipairs(profiler.examples or {}) do
    if type(example) ~= 'table' or type(example[1]) ~= 'string' or type(example[2]) ~= 'string' then
      return ("example %d is not { 'command', 'what it shows' }"):format(i)
    end
  end
end

--- The text of a script that may be run: anyone could have written a world-writable one.
---@param self scripts.Scripts
---@param path string
---@return string? text, string? message
local function read(self, path)
  local st, err = self.sys.stat(path)
  if not st then return nil, ('%s: %s'):format(path, err) end
  if st.isdir then return nil, path .. ': is a directory' end
  if bit.band(st.mode, WORLD_WRITABLE) ~= 0 then
    return nil, ("%s: refused, anyone may write it; 'chmod o-w %s' allows it"):format(path, path)
  end
  local file, message = io.open(path, 'rb')
  if not file then return nil, message end
  local text
  text, message = file:read '*a'
  file:close()
  if not text then return nil, ('%s: %s'):format(path, message) end
  if text:sub(1, 1) == '\27' then return nil, path .. ': is bytecode; scripts are text' end
  return text
end

--- Loads one file.
---@param path string
---@return scripts.Script? script, string? message
function scripts:load_file(path)
  local text, message = read(self, path)
  if not text then return nil, message end
  -- A "#!" line stays as a comment, so that lines keep their numbers.
  failure.add_script('@' .. path)
  local env = environment.new()
  local chunk, syntax = load(text:gsub('^#', '--', 1), '@' .. path, 't', env)
  if not chunk then return nil, one_line(path, syntax) end
  message = globals.check(path, chunk, env)
  if message then return nil, message end
  local ok, profiler = xpcall(chunk, failure.traceback)
  if not ok then return nil, one_line(path, profiler) end
  message = check_table(profiler)
  if message then return nil, ('%s: %s'):format(path, message) end
  local spec
  spec, message = options.declare(profiler)
  if not spec then return nil, ('%s: %s'):format(path, message) end
  return {
    name = name_of(path:match '[^/]*$'),
    path = path,
    profiler = profiler,
    spec = spec,
    is_shipped = path:sub(1, #self.shipped) == self.shipped,
  }
end

--- The profilers that the name of their file can reach: name -> path, the first directory wins.
---@return table<string, string>
function scripts:paths()
  local paths = {}
  for _, dir in ipairs(self.dirs) do
    for _, file in ipairs(self.sys.readdir(dir) or {}) do
      local name = file:match '^[^.].*%.lua$' and name_of(file)
      if name and not paths[name] then paths[name] = dir .. '/' .. file end
    end
  end
  return paths
end

--- The same with the other names that some have.
---@return table<string, string>
function scripts:names()
  local paths = self:paths()
  for also, name in pairs(ALSO) do
    paths[also] = paths[also] or paths[name]
  end
  return paths
end

--- Where a profiler is. `given` is a path, or the name of a file in a search directory; both with or
--- without ".lua".
---@param given string
---@return string? path, string? message
function scripts:find(given)
  local name = given:gsub('%.lua$', '')
  if given:find '/' or name ~= given then
    for _, path in ipairs { given, given .. '.lua' } do
      local st = self.sys.stat(path)
      if st and not st.isdir then return path end
    end
    if given:find '/' then return nil, ("profscript: no file '%s'"):format(given) end
  end
  local paths = self:names()
  if paths[name] then return paths[name] end
  local hint = nearest.hint(name, nearest.keys(paths))
  local here = {}
  for _, file in ipairs(self.sys.readdir '.' or {}) do here[#here + 1] = file:match '^([^.].*)%.lua$' end
  table.sort(here)
  local near_here = nearest.find(name, here)
  if near_here and (near_here == name or hint == '') then hint = ("; did you mean './%s.lua'?"):format(near_here) end
  return nil, ("profscript: no profiler '%s'%s\ntry 'profscript -h'"):format(given, hint)
end

--- Finds and loads a profiler.
---@param given string name or path
---@return scripts.Script? script, string? message
function scripts:load(given)
  local path, message = self:find(given)
  if not path then return nil, message end
  local script
  script, message = self:load_file(path)
  if script and (given == path or given:find '/') then script.given = given end
  return script, message
end

--- The profilers that load, by name.
---@return scripts.Script[]
function scripts:load_all()
  local loaded = {}
  local paths = self:paths()
  for _, name in ipairs(nearest.keys(paths)) do
    loaded[#loaded + 1] = self:load_file(paths[name])
  end
  return loaded
end

--- All profilers by name, for help and completion. A file that does not load is listed with its error.
---@return { name: string, also?: string, path: string, summary?: string, is_tool?: boolean, error?: string }[]
function scripts:list()
  local entries = {}
  local paths = self:paths()
  for i, name in ipairs(nearest.keys(paths)) do
    local script, message = self:load_file(paths[name])
    entries[i] = {
      name = name,
      path = paths[name],
      summary = script and script.profiler.summary,
      is_tool = script and script.profiler.events == false or nil,
      error = message,
    }
    for also, other in pairs(ALSO) do
      if other == name and not paths[also] then entries[i].also = also end
    end
  end
  return entries
end

return scripts
