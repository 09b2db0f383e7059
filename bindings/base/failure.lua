-- SPDX-License-Identifier: GPL-2.0-only
--- Failure: an error that carries a message for the user and the exit code. Any other error that reaches the top is
--- a bug in a script, and is printed with its file and line.
local ffi = require 'ffi'

local failure = {}

local Failure = {}
Failure.__index = Failure
Failure.__tostring = function(self) return self.message end

local function throw(code, message, ...)
  if select('#', ...) > 0 then message = message:format(...) end
  error(setmetatable({ code = code, message = message }, Failure), 0)
end

--- Fails with exit code 1: the command is valid but did not work.
---@param message string a format, or plain text if no arguments follow
function failure.raise(message, ...) throw(1, message, ...) end

--- Fails with exit code 2: the command line is invalid.
---@param message string a format, or plain text if no arguments follow
function failure.usage(message, ...) throw(2, message, ...) end

--- Fails with exit code 3: the command line is valid, but this kernel or machine lacks or forbids what it needs.
---@param message string a format, or plain text if no arguments follow
function failure.unavailable(message, ...) throw(3, message, ...) end

--- Fails with the error of a C function: exit code 1, or 3 if the error is marked as unavailable.
---@param err ffi.cdata* struct error
function failure.of(err) throw(err.unavailable ~= 0 and 3 or 1, '%s', ffi.string(err.text)) end

local scripts = {} -- names for messages, by chunk name
local names = {} -- the set of these names
debug.getregistry()['profscript.scripts'] = scripts -- limits.c checks whether one of them is running

--- Marks a chunk as a script.
---@param chunk string as load() takes it: '@PATH', '=NAME'
function failure.add_script(chunk)
  local name = chunk:sub(2)
  scripts[chunk], names[name] = name, true
end

local typed = {} -- parts of a script that is in no file, by name

--- Sets the parts of a script that is in no file, each of which is a chunk of this name.
---@param name string
---@param parts? string[]
function failure.set_parts(name, parts) typed[name] = parts end

--- Returns the name of the script that a chunk is; nil for other chunks.
---@param source string as debug.getinfo() returns it
---@return string?
function failure.script_of(source) return scripts[source] end

--- Returns a message without the places that coroutine.wrap() and error() put in front of the first one.
local function innermost(message)
  local rest = message:match '^[^\n]-:%d+: (.*)$'
  while rest and names[rest:match '^([^\n]-):%d+: ' or ''] do
    message, rest = rest, rest:match '^[^\n]-:%d+: (.*)$'
  end
  return message
end

local MAX_LEVELS = 200 -- of a stack that are looked at: to find a level takes longer the deeper it is

--- Puts the script's file and line in front of a message. An error raised in a function that the script called, such
--- as for an invalid argument, is reported at that call. The path is in full, where Lua shortens it to "...".
---@param message string
---@param is_placeless boolean the message has no place: it gets that of the running line
local function with_place(message, is_placeless)
  message = innermost(message)
  local place, line, text = message:match '^(.-):(%d+): (.*)$'
  if is_placeless then
    text = message
  elseif not place then
    return message
  end
  local sources, script, script_line, level = {}, nil, nil, 3
  local info = debug.getinfo(level, 'Sl')
  while info and level < MAX_LEVELS do
    sources[info.short_src] = info.source
    if not script and scripts[info.source] then script, script_line = scripts[info.source], info.currentline end
    level = level + 1
    info = debug.getinfo(level, 'Sl')
  end
  local source = sources[place]
  if not script or not source and not is_placeless then return message end
  if source and scripts[source] then script, script_line = scripts[source], line end
  return ('%s:%s: %s'):format(script, script_line, text)
end

--- Returns what a script raised as text. error() accepts any value, and its __tostring may fail.
---@return string message
---@return boolean is_placeless
local function text_of(err)
  if type(err) == 'string' then return err, false end
  local ok, text = pcall(tostring, err)
  if type(err) == 'table' and ok and type(text) == 'string' and not text:find '^table: 0x' then return text, true end
  return ('error() was called with %s, not with text'):format(err == nil and 'nil' or 'a ' .. type(err)), true
end

local SIGNS = { perform = '[-+*/%%^]', index = '[.:%[]', call = '%(', concatenate = '%.%.' }

--- Returns a line of the only part of a script that can have failed in this way; nil if several can.
local function typed_line(parts, line, what)
  local found
  for _, part in ipairs(parts) do
    local n = 0
    for one in (part .. '\n'):gmatch '([^\n]*)\n' do
      n = n + 1
      if n == line and one:find(SIGNS[what] or '%S') then
        if found then return end
        found = one
      end
    end
  end
  return found
end

--- Returns a line of a file.
local function file_line(path, line)
  local file, n, text = names[path] and io.open(path), 0, nil
  if not file then return end
  for one in file:lines() do
    n = n + 1
    if n == line then text = one end
  end
  file:close()
  return text
end

--- Returns a message about nil in a computation with the line of the script.
local function with_line(message)
  local path, line, what = message:match '^([^\n]-):(%d+): attempt to ([%l ]-) [^\n]*a nil value$'
  if not path then return message end
  local text = typed[path] and typed_line(typed[path], tonumber(line), what) or file_line(path, tonumber(line))
  return text and ('%s: %s'):format(message, text:match '^%s*(.-)%s*$') or message
end

--- Message handler for xpcall: returns failures unchanged, and adds the script's line to any other error.
function failure.traceback(err)
  if failure.is(err) then return err end
  local message = with_line(with_place(text_of(err)))
  -- An error without a place, as error(message, 0) raises it, is about the input: a traceback does not help.
  local has_place = message:find '^[^\n]-:%d+: ' ~= nil or message == 'not enough memory'
  local traceback = has_place and debug.traceback('', 2):sub(2) or nil
  return setmetatable({ code = 1, message = message, traceback = traceback }, Failure)
end

---@return boolean
function failure.is(err) return getmetatable(err) == Failure end

return failure
