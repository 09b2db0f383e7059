-- SPDX-License-Identifier: GPL-2.0-only
--- How the Lua side gives up: an error that carries the user's line and the exit code. Anything else
--- that reaches the top is a mistake in a script, and is shown with its place.
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

--- The command line is right, but this kernel or machine lacks or forbids what it takes: exit code 3.
---@param message string format, or text when nothing follows
function failure.unavailable(message, ...) throw(3, message, ...) end

--- A C function failed: exit code 1, or 3 if it said that the machine is to blame.
---@param err ffi.cdata* struct error
function failure.of(err) throw(err.unavailable ~= 0 and 3 or 1, '%s', ffi.string(err.text)) end

--- Message handler of xpcall: keeps failures as they are, and where a script went wrong.
function failure.traceback(err)
  if failure.is(err) then return err end
  return setmetatable({ code = 1, message = tostring(err), traceback = debug.traceback(tostring(err), 2) }, Failure)
end

---@return boolean
function failure.is(err) return getmetatable(err) == Failure end

return failure
