-- SPDX-License-Identifier: GPL-2.0-only
--- The globals of a script. They are copies, so a script's changes affect only itself. They exclude everything that
--- can corrupt the host (ffi, debug, bytecode): a bug in a script must not crash the host. This is not a sandbox: a
--- script can read files and run commands.
require 'bindings.base.buffer'
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'

local C = ffi.C
local environment = {}

local PLAIN = {
  'assert', 'collectgarbage', 'error', 'ipairs', 'next', 'pairs', 'pcall', 'print', 'rawequal', 'rawget', 'rawset',
  'select', 'tonumber', 'tostring', 'type', 'unpack', 'xpcall', '_VERSION',
}
local LIBRARIES = { 'bit', 'coroutine', 'io', 'math', 'os', 'string', 'table' }
-- Modules of LuaJIT that are useful and harmless.
local EXTENSIONS = { ['string.buffer'] = true, ['table.new'] = true, ['table.clear'] = true }
-- Search path of third-party modules.
local MODULES = '/usr/local/share/lua/5.1/?.lua;/usr/local/share/lua/5.1/?/init.lua;'
  .. '/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua'

local INSTEAD = {
  ffi = 'use lib.array, lib.intern, lib.hist or lib.objects',
  jit = 'the event loop is compiled anyway',
  debug = 'use -v to print a traceback',
  package = 'require() finds lib.*, modules beside the script and pure Lua modules',
  bindings = 'use lib.*, session and out (docs/api.md)',
}

local function copy(t)
  local new = {}
  for key, value in pairs(t) do new[key] = value end
  return new
end

local libraries = {} -- read-only modules for scripts, by name

--- Returns a module of lib.* that scripts cannot change.
local function library(name)
  if libraries[name] then return libraries[name] end
  if not package.searchpath(name, package.path) then error(("module '%s' not found"):format(name), 2) end
  local module = require(name)
  if type(module) ~= 'table' then return module end
  libraries[name] = setmetatable({}, {
    __index = function(_, key)
      local value = module[key]
      if value == nil then
        error(("%s has no '%s'%s"):format(name, tostring(key), nearest.hint(tostring(key), nearest.keys(module))), 2)
      end
      return value
    end,
    __newindex = function() error(name .. ' is read-only', 2) end,
  })
  return libraries[name]
end

local function check_stack()
  if C.limits_stack_is_short() then error('stack overflow', 3) end
end

-- LuaJIT does not check the C stack, which these functions use to call those of the script. gsub is replaced for
-- everyone, because it is also a method of strings.
local gsub, resume, wrap = string.gsub, coroutine.resume, coroutine.wrap

function string.gsub(s, pattern, with, n) -- luacheck: ignore 122
  if type(with) ~= 'string' then check_stack() end
  local text, count = gsub(s, pattern, with, n)
  return text, count
end

local function checked_resume(...)
  check_stack()
  return resume(...)
end

local function checked_wrap(f)
  local run = wrap(f)
  return function(...)
    check_stack()
    return run(...)
  end
end

--- Raises an error for a module that scripts must not use.
---@param name string
---@param from string the module or script that requires it
local function check_name(name, from)
  local package_name, rest = name:match '^([^.]+)%.?(.*)$'
  local instead = INSTEAD[package_name]
  if not instead then return end
  local last = rest:match '[^.]*$'
  if package_name == 'bindings' and package.searchpath('lib.' .. last, package.path) then
    instead = ('use lib.%s'):format(last)
  end
  error(("%s cannot use '%s': %s"):format(from, name, instead), 3)
end

--- Makes reading or assigning any other global an error.
local function strict(env)
  return setmetatable(env, {
    __index = function(_, name)
      error(("undeclared global '%s'%s"):format(tostring(name), nearest.hint(tostring(name), nearest.keys(env))), 2)
    end,
    __newindex = function(_, name)
      error(("assignment to undeclared global '%s'; make it local"):format(tostring(name)), 2)
    end,
  })
end

--- How a script finds and loads the modules that lie beside it.
---@class environment.Modules
---@field folder string the script's
---@field load fun(path: string, env: table): function?, string? loads a file of a user

--- Returns the path of a module beside the script; nil if there is none.
local function beside(modules, name)
  if not modules then return end
  local folder = modules.folder:gsub('[;?]', '\0') -- a path with these cannot be searched
  return (package.searchpath(name, ('%s/?.lua;%s/?/init.lua'):format(folder, folder)))
end

--- Returns the require() of a script and of the modules that it requires.
---@param globals table the script's globals, before it runs
---@param modules? environment.Modules
local function new_require(globals, modules)
  local loaded, require_from = {}, nil

  --- Runs a pure Lua module with its own globals, which begin as the script's. Only a module beside the script is
  --- checked like it: others may rely on globals of their own.
  local function load_module(name, from)
    local own = beside(modules, name)
    local path = own or package.searchpath(name, MODULES)
    if not path then
      if package.searchpath(name, package.cpath) then
        error(("%s cannot use '%s': it is a C module"):format(from, name), 3)
      end
      error(("module '%s' not found"):format(name), 3)
    end
    local from_module = require_from(("module '%s'"):format(name))
    local env
    if own then
      env = copy(globals)
      env.require, env._G = from_module, env
      strict(env)
    else
      env = setmetatable({ require = from_module }, { __index = globals })
      env._G = env
    end
    local chunk, message
    if own then chunk, message = modules.load(path, env) else chunk, message = loadfile(path, 't', env) end
    if not chunk then error(message, 0) end
    loaded[name] = true
    local result = chunk(name)
    if result ~= nil then loaded[name] = result end
    return loaded[name]
  end

  function require_from(from)
    return function(name)
      if type(name) ~= 'string' then error(('require takes a name, not a %s'):format(type(name)), 2) end
      if name:find '^lib%.[%w_]+$' or name:find '^lib%.engines%.' then return library(name) end
      if EXTENSIONS[name] then return require(name) end
      if loaded[name] ~= nil then return loaded[name] end
      for _, standard in ipairs(LIBRARIES) do
        if name == standard then return globals[name] end
      end
      check_name(name, from)
      return (load_module(name, from))
    end
  end
  return require_from 'a script'
end

--- Adds getmetatable() and setmetatable(), which only handle the script's own metatables: those of strings, files and
--- the host's objects belong to the host.
local function add_metatables(globals)
  local own = setmetatable({}, { __mode = 'k' })
  globals.getmetatable = function(value)
    local found = getmetatable(value)
    if type(found) ~= 'table' or own[found] then return found end
  end
  globals.setmetatable = function(t, new)
    local old = getmetatable(t)
    if type(old) == 'table' and not own[old] then error('the metatable of an object of the host is read-only', 2) end
    if type(new) == 'table' then own[new] = true end
    local changed = setmetatable(t, new)
    return changed
  end
end

--- Adds load() and its relatives. They accept only text, because nothing verifies bytecode.
local function add_loaders(env)
  local function new_chunk(chunk, name, globals)
    name = name or type(chunk) == 'string' and chunk or '=(load)'
    failure.add_script(name)
    return load(chunk, name, 't', globals or env)
  end
  env.load = function(chunk, name, _, globals) return new_chunk(chunk, name, globals) end
  env.loadstring = function(text, name) return new_chunk(text, name) end
  env.loadfile = function(path, _, globals)
    failure.add_script('@' .. tostring(path))
    return loadfile(path, 't', globals or env)
  end
  env.dofile = function(path)
    local chunk, message = env.loadfile(path)
    if not chunk then error(message, message:find '^.-:%d+: ' and 0 or 2) end
    return chunk()
  end
end

--- Returns new globals. Reading or assigning any other global raises an error, so a forgotten `local` or a misspelled
--- name is reported at its line.
---@param modules? environment.Modules
---@return table
function environment.new(modules)
  local globals = {}
  for _, name in ipairs(PLAIN) do globals[name] = _G[name] end
  for _, name in ipairs(LIBRARIES) do globals[name] = copy(_G[name]) end
  globals.string.dump = nil
  globals.ipairs = function(list)
    if type(list) == 'cdata' then
      error('ipairs takes a table; an array of an event is read by for i = 0, #ev.NAME - 1 do print(ev.NAME[i]) end',
        2)
    end
    return ipairs(list)
  end
  globals.coroutine.resume, globals.coroutine.wrap = checked_resume, checked_wrap
  globals.os.exit = function()
    error('os.exit is not allowed: it would leave probes and unwritten output behind; use session.stop()', 2)
  end
  globals.os.setlocale = function()
    error('os.setlocale is not allowed: it would change how the host prints numbers', 2)
  end
  add_metatables(globals)

  local env = copy(globals)
  env._G = env
  add_loaders(env)
  for _, name in ipairs { 'load', 'loadstring', 'loadfile', 'dofile' } do globals[name] = env[name] end
  env.require = new_require(globals, modules)
  return strict(env)
end

return environment
