-- SPDX-License-Identifier: GPL-2.0-only
--- Mentions: whether the code of a script may use a name or an object. All functions and tables that can be reached
--- from it are searched, so the answer errs on the side of yes. Names that a script puts together from pieces are not
--- found.
local facade = require 'bindings.base.facade'
local lua_source = require 'bindings.base.lua_source'
local util = require 'jit.util'

local mentions = {}

local MAX_OBJECTS = 100000

local function is_host(fn) return lua_source.is_host(debug.getinfo(fn, 'S').source) end

--- Calls found(value) for each constant of a function and of the functions in it, and each_function for these.
local function constants(fn, found, each_function)
  local i = -1
  if each_function then each_function(fn) end
  local constant = util.funck(fn, i)
  while constant ~= nil do
    if type(constant) == 'proto' then constants(constant, found, each_function) else found(constant) end
    i = i - 1
    constant = util.funck(fn, i)
  end
end

--- Searches what can be reached from values of a script: functions, their constants and upvalues, and tables. Of the
--- host's objects behind facades, too.
---@param roots { [integer]: any, of_host?: any[] }
---@param found fun(value: any, of_host: boolean, is_code: boolean): boolean ends the search. of_host: what the host's
--- functions and objects hold; is_code: it is a constant of a function. Upvalues are also passed as debug.upvalueid()
---@param is_closed? fun(value: table|function): boolean tables and functions into which the search does not go
---@param each_function? fun(fn: function|userdata) called for each function of the script and each prototype in it
---@return boolean ended also if there is too much to search
local function search(roots, found, is_closed, each_function)
  local seen, left, ended = {}, {}, false
  local function add(value, of_host, is_code)
    local kind = type(value)
    if kind == 'nil' or ended then return end
    ended = found(value, of_host or false, is_code or false)
    of_host = of_host or false
    if (kind == 'table' or kind == 'function') and (seen[value] == nil or seen[value] and not of_host) then
      seen[value] = of_host -- what is reached from both sides counts as the script's
      local object = kind == 'table' and facade.object(value)
      if object and not ended then ended = found(object, true, false) end
      left[#left + 1] = { object or value, of_host or object ~= nil }
    end
  end
  local function open_function(fn, of_host)
    local info = debug.getinfo(fn, 'Su')
    of_host = info.what ~= 'C' and is_host(fn) or info.what == 'C' and of_host
    if info.what == 'Lua' and not of_host then
      constants(fn, function(constant) add(constant, false, true) end, each_function)
      local env = debug.getfenv(fn)
      if env ~= _G then add(env, false) end -- the library's globals are the host's
    end
    for i = 1, info.nups do
      if info.what ~= 'C' then ended = ended or found(debug.upvalueid(fn, i), of_host, false) end
      add(select(2, debug.getupvalue(fn, i)), of_host)
    end
  end
  for _, root in ipairs(roots) do add(root, false) end
  for _, object in ipairs(roots.of_host or {}) do add(object, true) end
  local n = 0
  while #left > 0 and not ended do
    local value, of_host = unpack(table.remove(left))
    n = n + 1
    if n > MAX_OBJECTS then return true end
    local is_open = not (is_closed and is_closed(value))
    if is_open and type(value) == 'function' then
      open_function(value, of_host)
    elseif is_open then
      for key, member in next, value do
        add(key, of_host)
        add(member, of_host)
      end
      if not of_host then add(debug.getmetatable(value), false) end
    end
  end
  return ended
end

--- Returns whether a string that the code of a script can reach matches. What the host's functions and objects hold
--- does not count, except for the script's functions in it.
---@param roots { [integer]: any, of_host?: any[] } of the script, and objects of the host
---@param matches fun(text: string, is_code: boolean): boolean is_code: it is in the code of a function, not in a table
---@param each_function? fun(fn: function|userdata) called for each function of the script and each prototype in it
---@param is_closed? fun(value: table|function): boolean tables and functions that do not matter
---@return boolean
function mentions.any(roots, matches, each_function, is_closed)
  return search(roots, function(value, of_host, is_code)
    return type(value) == 'string' and not of_host and matches(value, is_code)
  end, is_closed, each_function)
end

--- Returns whether the code of a script can reach one of some objects and upvalues, by identity.
---@param roots { [integer]: any, of_host?: any[] } of the script, and objects of the host
---@param wanted table<any, boolean> keys: objects, and ids of upvalues
---@param is_closed fun(value: table|function): boolean tables and functions that do not matter
---@return boolean
function mentions.reaches(roots, wanted, is_closed)
  return search(roots, function(value) return wanted[value] == true end, is_closed)
end

--- Returns which tables lead from a script to the whole host: the search does not go into them.
---@param run Run
---@return fun(value: table|function): boolean is_closed
function mentions.leads_to(run)
  return function(value)
    if type(value) ~= 'table' then return false end
    return value == run or rawget(value, 'run') == run or value == run.services or value == run.events
  end
end

--- Returns which tables are modules of the library: what they say, such as help, is not what a script asks for.
---@return fun(value: table|function): boolean is_closed
function mentions.is_library()
  local modules = {}
  for name, module in pairs(package.loaded) do
    if type(module) == 'table' and name:find '^lib%.' then modules[module] = true end
  end
  return function(value) return modules[value] == true end
end

--- Returns whether a string in a table of options, or in a table in it, matches.
---@param options table
---@param matches fun(text: string): boolean
---@return boolean
function mentions.option(options, matches)
  for _, value in next, options do
    if type(value) == 'string' and matches(value) or type(value) == 'table' and mentions.option(value, matches) then
      return true
    end
  end
  return false
end

return mentions
