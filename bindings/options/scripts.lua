-- SPDX-License-Identifier: GPL-2.0-only
--- Finds profiler files by name, loads them and checks the tables that they return. An error in a file is one line
--- with its location.
local bit = require 'bit'
local contract = require 'bindings.options.contract'
local environment = require 'bindings.options.environment'
local failure = require 'bindings.base.failure'
local globals = require 'bindings.options.globals'
local nearest = require 'bindings.base.nearest'
local options = require 'bindings.options.parser'
local selector = require 'bindings.select.selector'
local values = require 'bindings.options.values'
local wide_keys = require 'bindings.options.wide_keys'

--- System calls that Lua lacks, passed by the host.
---@class scripts.Sys
---@field readdir fun(path: string): string[]?, string? names in a directory
---@field stat fun(path: string): { mode: integer, uid: integer, isdir: boolean }?, string?
---@field getenv fun(name: string): string?

--- A loaded profiler.
---@class scripts.Script
---@field name string
---@field path string
---@field given? string how the user named the file, if by its path
---@field profiler table the table returned by the file
---@field is_shipped boolean it ships with profscript, so its event names are spelled correctly
---@field spec opt.Spec
---@field files string[] the script and the modules beside it that it has required

---@class scripts.Scripts
---@field sys scripts.Sys
---@field dirs string[] in search order
---@field shipped string path prefix of the scripts that ship with profscript
local scripts = {}
scripts.__index = scripts

local ALIASES = { ['event-care'] = 'event-lost' } -- perf-prof's names
local FILE_OF = { ['bpf:kvm_exit'] = 'bpf-kvm_exit' } -- for names that are not portable file names

local WORLD_WRITABLE = 2 -- mode bit o+w
local MAX_SIZE = 16 * 1024 * 1024 -- bytes

--- What a script returns: one table. Everything but `start` is data.
---@class Profiler
---@field summary string one line for the list of profilers
---@field start fun(opt: Options, out: Output, session: Session): Handlers?, string? requests events, and returns the
--- handlers, or nil and what is wrong with the command line
---@field description? string text for --help
---@field examples? string[][] list of { 'command', 'what it shows' }
---@field options? table<string, OptionDeclaration> what the command line takes besides the common options
---@field positional? OptionDeclaration[] arguments without a dash, in order
---@field unsupported? string[] the common options that make no sense for this profiler
---@field attributes? string[] the event attributes that it reads, such as { 'key', 'num' }
---@field optional? table<string, string> tracepoints that it can do without in a recording, and what the result lacks
--- then, which a line says
---@field metrics? table<string, table<string, string>> what the fields of `out:record` and `out:row` are to metrics
--- and the page of --serve, by the name of the record, as `metric` of a column
---@field compares? boolean true: BPF programs count the events that perf takes, too, and a line says if these were more
---@field everywhere? boolean true: trace all CPUs, even if -p, -t or a workload names threads
---@field events? boolean false: a command without events; start() does all the work

-- The valid keys of a profiler's table, and the required ones.
local KEYS = {
  summary = 'string',
  description = 'string',
  examples = 'table',
  options = 'table',
  positional = 'table',
  unsupported = 'table',
  attributes = 'table',
  optional = 'table',
  metrics = 'table',
  compares = 'boolean', -- BPF programs count the events that perf takes, too
  everywhere = 'boolean', -- attach to all CPUs; -p, -t and a workload select from their events
  events = 'boolean', -- false: start() does all the work and returns nothing
  start = 'function',
}
local REQUIRED = { 'summary', 'start' }

--- The mistake of a module that is taken for a script.
scripts.MODULE = "a module for other scripts: its table has neither 'summary' nor 'start'"

---@param sys scripts.Sys
---@param datadir string directory of the shipped scripts
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

--- Returns the name of the profiler in a file.
---@param file string without its directory
---@return string
local function name_of(file)
  local stem = file:gsub('%.lua$', '')
  for name, of in pairs(FILE_OF) do
    if stem == of then return name end
  end
  return stem
end

--- Returns the first line of a script's error, with the full path, which Lua may have shortened to "...".
local function one_line(path, message)
  local first = tostring(message):match('^[^\n]*'):gsub(':%s*$', '')
  local shortened, line, text = first:match '^(.-):(%d+): (.*)$'
  if not shortened then return ('%s: %s'):format(path, first) end
  if shortened:sub(1, 3) == '...' and path:sub(-(#shortened - 3)) == shortened:sub(4) then shortened = path end
  return ('%s:%s: %s'):format(shortened, line, text)
end

local METRIC_KINDS = { label = true, counter = true, gauge = true, histogram = true, none = true }

--- Returns what is wrong with the metrics of a profiler.
local function check_metrics(metrics)
  for name, fields in pairs(metrics) do
    if type(name) ~= 'string' or type(fields) ~= 'table' then
      return ("metrics: '%s' is not the name of a record with a table of its fields"):format(tostring(name))
    end
    for field, kind in pairs(fields) do
      if type(field) ~= 'string' or not METRIC_KINDS[kind] then
        return ("metrics: %s.%s is '%s', not one of %s%s"):format(name, tostring(field), tostring(kind),
          table.concat(nearest.keys(METRIC_KINDS), ', '), nearest.hint(tostring(kind), nearest.keys(METRIC_KINDS)))
      end
    end
  end
end

---@param profiler any
---@return string? message if the table is invalid
local function check_table(profiler)
  if type(profiler) ~= 'table' then
    local what = profiler == nil and 'nothing' or 'a ' .. type(profiler)
    return ('the file returns %s, not a table with summary and start'):format(what)
  end
  for _, key in ipairs(nearest.keys(profiler)) do
    local value = profiler[key]
    if not KEYS[key] then
      local hint = nearest.hint(key, nearest.keys(KEYS))
      if hint == '' and profiler.summary == nil and profiler.start == nil then return scripts.MODULE end
      return ("unknown key '%s'%s"):format(key, hint)
    end
    if type(value) ~= KEYS[key] then
      return ("'%s' is a %s, not a %s"):format(key, type(value), KEYS[key])
    end
  end
  for key in pairs(profiler) do
    if type(key) ~= 'string' then return ("unknown key '%s'"):format(tostring(key)) end
  end
  for _, key in ipairs(REQUIRED) do
    if profiler[key] == nil then return ("missing '%s'"):format(key) end
  end
  for _, name in ipairs(profiler.attributes or {}) do
    if not selector.attributes[name] then
      return ("attributes: unknown event attribute '%s'%s"):format(tostring(name),
        nearest.hint(tostring(name), nearest.keys(selector.attributes)))
    end
  end
  for name, lack in pairs(profiler.optional or {}) do
    if type(name) ~= 'string' or not name:find '^[%w_]+:[%w_]+$' or type(lack) ~= 'string' then
      return ("optional: '%s' is not a tracepoint with a text"):format(tostring(name))
    end
  end
  local bad_metric = check_metrics(profiler.metrics or {})
  if bad_metric then return bad_metric end
  if profiler.summary:find '\n' then return "'summary' is more than one line" end
  for i, example in ipairs(profiler.examples or {}) do
    if type(example) ~= 'table' or type(example[1]) ~= 'string' or type(example[2]) ~= 'string' then
      return ("example %d is not a table { 'command', 'description' }"):format(i)
    end
  end
end

--- Returns the text of a script. Refuses world-writable files, which any user may have changed.
---@param self scripts.Scripts
---@param path string
---@return string? text, string? message
local function read(self, path)
  local st, err = self.sys.stat(path)
  if not st then return nil, ('%s: %s'):format(path, err) end
  if st.isdir then return nil, path .. ': is a directory' end
  if bit.band(st.mode, WORLD_WRITABLE) ~= 0 then
    return nil, ("%s: refused because it is world-writable; run 'chmod o-w %s'"):format(path, path)
  end
  local file, message = io.open(path, 'rb')
  if not file then return nil, message end
  local text
  text, message = file:read(MAX_SIZE + 1) -- a device may never end
  file:close()
  if message then return nil, ('%s: %s'):format(path, message) end
  text = text or ''
  if #text > MAX_SIZE then return nil, ('%s: longer than a script may be (16 MiB)'):format(path) end
  if text:sub(1, 1) == '\27' then return nil, path .. ': is bytecode, not Lua source' end
  return text
end

--- Loads the chunk of a user's file, whose globals are declared and whose keys are checked.
---@param self scripts.Scripts
---@param path string
---@param env table its globals
---@param load_text? function default: load()
---@return function? chunk, string? message
local function load_chunk(self, path, env, load_text)
  local text, message = read(self, path)
  if not text then return nil, message end
  -- Make a "#!" line a comment, to keep the line numbers.
  failure.add_script('@' .. path)
  local chunk, syntax = (load_text or wide_keys.load)(text:gsub('^#', '--', 1), '@' .. path, 't', env)
  if not chunk then
    local word = syntax:match "'<name>' expected near '(%a+)'"
    local hint = word and ("; '%s' is a word of Lua: write ev['%s']"):format(word, word) or ''
    return nil, one_line(path, syntax) .. hint
  end
  message = globals.check(path, chunk, env)
  if message then return nil, message end
  return chunk
end

--- Loads one file.
---@param path string
---@return scripts.Script? script
---@return string? message
---@return boolean? is_module the file is one for require(), not a profiler
function scripts:load_file(path)
  local is_shipped, files = path:sub(1, #self.shipped) == self.shipped, { path }
  local env = environment.new {
    folder = path:match '^(.*)/' or '.',
    load = function(module, globals_of)
      files[#files + 1] = module
      return load_chunk(self, module, globals_of)
    end,
  }
  local chunk, message = load_chunk(self, path, env, is_shipped and load or nil)
  if not chunk then return nil, message end
  local ok, profiler = xpcall(chunk, failure.traceback)
  if not ok then return nil, one_line(path, profiler) end
  message = check_table(profiler)
  if message then
    local is_module = type(profiler) == 'table' and profiler.summary == nil and profiler.start == nil
    return nil, ('%s: %s'):format(path, message), is_module
  end
  local spec
  spec, message = options.declare(profiler)
  if not spec then return nil, ('%s: %s'):format(path, message) end
  message = not is_shipped and contract.check_options(profiler.start, values.names(spec)) or nil
  if message then return nil, message end
  return {
    name = name_of(path:match '[^/]*$'),
    path = path,
    profiler = profiler,
    spec = spec,
    is_shipped = is_shipped,
    files = files,
  }
end

--- Returns the paths of all profilers by name. The first directory wins.
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

--- Returns the same, with aliases.
---@return table<string, string>
function scripts:names()
  local paths = self:paths()
  for alias, name in pairs(ALIASES) do
    paths[alias] = paths[alias] or paths[name]
  end
  return paths
end

--- Finds a profiler. `given` is a path, or the name of a file in a search directory, with or without ".lua".
---@param given string
---@return string? path, string? message
function scripts:find(given)
  local name = given:gsub('%.lua$', '')
  if given:find '/' or name ~= given then
    for _, path in ipairs { given, given .. '.lua' } do
      local st = self.sys.stat(path)
      if st and not st.isdir then return path end
    end
    if given:find '/' and self.sys.stat(given) then return nil, ("profscript: '%s' is a directory"):format(given) end
    if given:find '/' then return nil, ("profscript: no such file '%s'"):format(given) end
  end
  local paths = self:names()
  if paths[name] then return paths[name] end
  local hint = nearest.hint(name, nearest.keys(paths))
  local here = {}
  for _, file in ipairs(self.sys.readdir '.' or {}) do here[#here + 1] = file:match '^([^.].*)%.lua$' end
  table.sort(here)
  local near_here = nearest.find(name, here)
  if near_here and (near_here == name or hint == '') then hint = ("; did you mean './%s.lua'?"):format(near_here) end
  if name ~= given then return nil, ("profscript: no such file '%s'%s"):format(given, hint) end
  if name == 'python' then hint = "; 'profscript profile -g' names functions of Python that runs with -X perf" end
  return nil, ("profscript: no such profiler '%s'%s\ntry 'profscript -h'"):format(given, hint)
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

--- Loads all profilers, sorted by name. Omits those that fail to load.
---@return scripts.Script[]
function scripts:load_all()
  local loaded = {}
  local paths = self:paths()
  for _, name in ipairs(nearest.keys(paths)) do
    loaded[#loaded + 1] = self:load_file(paths[name])
  end
  return loaded
end

--- Lists all profilers by name, for help and completion. A file that fails to load is listed with its error, unless
--- it is a module that profilers share.
---@return { name: string, also?: string, path: string, summary?: string, is_tool?: boolean, error?: string }[]
function scripts:list()
  local entries = {}
  local paths = self:paths()
  for _, name in ipairs(nearest.keys(paths)) do
    local script, message, is_module = self:load_file(paths[name])
    entries[#entries + 1] = not is_module and {
      name = name,
      path = paths[name],
      summary = script and script.profiler.summary,
      is_tool = script and script.profiler.events == false or nil,
      error = message,
    } or nil
    for alias, other in pairs(ALIASES) do
      if other == name and not paths[alias] and not is_module then entries[#entries].also = alias end
    end
  end
  return entries
end

return scripts
