-- SPDX-License-Identifier: GPL-2.0-only
--- How the Lua side gives up: an error that carries the user's line and the exit code. Anything else
--- that reaches the top is a mistake in a script, and is shown with the script's place.
local ffi = require 'ffi'

local failure = {}

local Failure = {}
Failure.__index = Failure
Failure.__tostring = function(self) return self.message end

local function throw(code, message, ...)
  if select('#', ...) > 0 then message = message:format(...) end
  error(setmetatable({ code = code, message = message }, Failure), 0)
end

--- What was asked for did not work: exit code 1.
---@param message string format, or text when nothing follows
function failure.raise(message, ...) throw(1, message, ...) end

--- The command line is wrong: exit code 2.
---@param message string format, or text when nothing follows
function failure.usage(message, ...) throw(2, message, ...) end

local scripts = {} -- by the name of their chunk: what messages call them
debug.getregistry()['profscript.scripts'] = scripts -- for main.c, which looks whether one runs

--- Code of a chunk with this name is a script's.
---@param chunk string as load() takes it: '@PATH', '=NAME'
function failure.add_script(chunk) scripts[chunk] = chunk:sub(2) end

--- The message with the place in a script. An error that is raised in what the script has called, such as
--- for a wrong argument, is at the line of that call; and Lua shortens long paths to "...".
local function with_place(message)
  local place, line, text = message:match '^(.-):(%d+): (.*)$'
  if not place then return message end
  local sources, script, script_line, level = {}, nil, nil, 3
  local info = debug.getinfo(level, 'Sl')
  while info do
    sources[info.short_src] = info.source
    if not script and scripts[info.source] then script, script_line = scripts[info.source], info.currentline end
    level = level + 1
    info = debug.getinfo(level, 'Sl')
  end
  local source = sources[place]
  if not source or not script then return message end
  if scripts[source] then script, script_line = scripts[source], line end
  return ('%s:%s: %s'):format(script, script_line, text)
end
--- The command line is right, but this kernel or machine lacks or forbids what it takes: exit code 3.
---@param message string format, or text when nothing follows
function failure.unavailable(message, ...) throw(3, message, ...) end

--- A C function failed: exit code 1, or 3 if it said that the machine is to blame.
---@param err ffi.cdata* struct error
function failure.of(err) throw(err.unavailable ~= 0 and 3 or 1, '%s', ffi.string(err.text)) end

--- Message handler of xpcall: keeps failures as they are, and where a script went wrong.
function failure.traceback(err)
  if failure.is(err) then return err end
  local message = with_place(tostring(err))
  -- What is raised without a place, as error(message, 0) does, is about the input: where is of no interest.
  local has_place = message:find '^[^\n]-:%d+: ' ~= nil or message == 'not enough memory'
  local traceback = has_place and debug.traceback('', 2):sub(2) or nil
  return setmetatable({ code = 1, message = message, traceback = traceback }, Failure)
end

---@return boolean
function failure.is(err) return getmetatable(err) == Failure end

return failure
