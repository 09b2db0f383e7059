-- SPDX-License-Identifier: GPL-2.0-only
--- Tells the watchdog (bindings/limits.h) which line of a script each piece of compiled code is from. Compiled code
--- cannot be interrupted, so an endless loop in it ends the process; this says where it was.
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local util = require 'jit.util'

local C = ffi.C
local code_places = {}

local texts = {} -- "FILE:LINE", kept for C
local line_of -- of the trace that is being recorded

--- Returns "FILE:LINE" of an instruction of a script; nil for other code.
local function script_line(func, pc)
  local info = util.funcinfo(func, pc)
  local name = info.source and failure.script_of(info.source)
  if not name or not info.currentline then return end
  local text = ('%s:%d'):format(name, info.currentline)
  texts[text] = texts[text] or ffi.new('char[?]', #text + 1, text)
  return texts[text]
end

local function on_trace(what, trace, func, pc)
  if what == 'start' then
    line_of = script_line(func, pc)
  elseif what == 'stop' and line_of then
    local code, address = util.tracemc(trace)
    if code then C.limits_add_code(address, #code, line_of) end
  elseif what == 'flush' then
    C.limits_forget_code()
  end
end

--- Begins to follow the compiler, unless jit.v does: there can be one listener.
function code_places.follow()
  if next(debug.getregistry()._VMEVENTS or {}) then return end
  require('jit').attach(on_trace, 'trace')
end

return code_places
