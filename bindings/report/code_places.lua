-- SPDX-License-Identifier: GPL-2.0-only
--- Tells the watchdog (bindings/limits.h) which line of a script each piece of compiled code is from. Compiled code
--- cannot be interrupted, so an endless loop in it ends the process; this says where it was.
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local util = require 'jit.util'

local C = ffi.C
local code_places = {}

local texts = {} -- "FILE:LINE", kept for C
local functions = setmetatable({}, { __mode = 'k' }) -- where their instructions are from; false: not a script's
local latest -- the number of the trace that is recorded, or was recorded last
local latest_place -- of its last instruction that is a script's
local known = {} -- traces that C knows, by number

--- Returns "FILE:LINE" of an instruction of a script; nil for other code.
local function script_line(func, pc)
  local info = util.funcinfo(func, pc)
  local name = info.source and failure.script_of(info.source)
  if not name or not info.currentline then return end
  local text = ('%s:%d'):format(name, info.currentline)
  texts[text] = texts[text] or ffi.new('char[?]', #text + 1, text)
  return texts[text]
end

local function place_of(func, pc)
  local places = functions[func]
  if places == nil then
    local info = util.funcinfo(func)
    places = info.source and failure.script_of(info.source) and {} or false
    functions[func] = places
  end
  if not places then return end
  places[pc] = places[pc] or script_line(func, pc)
  return places[pc]
end

--- The trace that was recorded last is complete, or was given up: tells C of its code.
local function add_latest()
  local code, address = util.tracemc(latest)
  if not code then return end
  known[latest] = true
  if latest_place then C.limits_add_code(address, #code, latest_place) end
end

local function begin(trace)
  if latest then add_latest() end
  if known[trace] then -- its number is free again: all code was dropped
    C.limits_forget_code()
    known = {}
  end
  latest, latest_place = trace, nil
  C.limits_latest_code(nil)
end

--- Called for each instruction that is recorded. The few events of kind `trace` do not serve: if LuaJIT has no room on
--- its stack for the one that says that it gives up a trace, it tries again for ever. So code becomes known when the
--- next trace begins, and code that C does not know is that of the latest trace. Without room this fails too, which
--- only means that a place is not known.
local function on_record(trace, func, pc)
  if trace ~= latest then begin(trace) end
  local place = place_of(func, pc)
  if place and place ~= latest_place then
    latest_place = place
    C.limits_latest_code(place)
  end
end

--- Begins to follow the compiler, unless jit.v does: there can be one listener.
function code_places.follow()
  if next(debug.getregistry()._VMEVENTS or {}) then return end
  C.limits_hush()
  require('jit').attach(on_record, 'record')
end

return code_places
