-- SPDX-License-Identifier: GPL-2.0-only
--- Axis: how times are printed with events. Usually as seconds of the events' own clock, else as --tsc, --kvmclock and
--- --clock-offset say. Only printed times are converted: durations remain ns.
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'

local C = ffi.C
local axis = {}

local TEXT_SIZE = 32
local MAX_EXACT = 2 ^ 53 -- integers above it are no longer exact

---@class Axis
---@field put fun(buf: string.buffer, time: number) appends a time, given in ns since the session's base
---@field value fun(time: number): number|integer64 the time in JSON and CSV: seconds, or cycles
---@field unit string 's' or 'cycles'
---@field ready fun(): boolean whether times can be converted
---@field converted? ffi.cdata* struct clock_axis *; nil: the times are those of the events' own clock

--- The events' own clock. Its base is known after the first events. Clocks that count since 1970 need more digits than
--- a double has, so seconds and ns are separate.
local function own_clock(session)
  local base_sec, base_ns
  local floor = math.floor
  local function read_base()
    local base = C.session_exact_time(session, 0)
    base_sec, base_ns = tonumber(base / 1000000000ULL), tonumber(base % 1000000000ULL)
  end
  return {
    unit = 's',
    ready = function() return true end,
    put = function(buf, time)
      if not base_sec then read_base() end
      local us = floor((base_ns + time) / 1000 + 0.5)
      local sec = floor(us / 1e6)
      buf:putf('%d.%06d', base_sec + sec, us - sec * 1e6)
    end,
    value = function(time)
      if not base_sec then read_base() end
      local ns = base_sec * 1e9 + base_ns + time
      return ns < MAX_EXACT and ns / 1e9 or base_sec + (base_ns + time) / 1e9
    end,
  }
end

local function other_clock(session, converted)
  local is_cycles, text = C.clock_axis_is_cycles(converted) ~= 0, ffi.new('char[?]', TEXT_SIZE)
  return {
    unit = is_cycles and 'cycles' or 's',
    converted = converted,
    ready = function()
      C.session_tell_axis(session, converted)
      return C.clock_axis_ready(converted) ~= 0
    end,
    put = function(buf, time)
      buf:put(ffi.string(text, C.clock_axis_text(converted, C.session_exact_time(session, time), text, TEXT_SIZE)))
    end,
    value = function(time)
      local value = C.clock_axis_time(converted, C.session_exact_time(session, time))
      return is_cycles and value or tonumber(value) / 1e9
    end,
  }
end

---@param session ffi.cdata* struct session *
---@param opt table parsed options
---@return Axis
function axis.new(session, opt)
  if not (opt.tsc or opt.kvmclock or opt.clock_offset or opt.monotonic) then return own_clock(session) end
  local options, err = ffi.new 'struct axis_options', ffi.new 'struct error'
  options.vm, options.offset = opt.kvmclock, opt.clock_offset or 0
  options.tsc, options.monotonic = opt.tsc and 1 or 0, opt.monotonic and 1 or 0
  local converted = C.clock_axis_new(options, C.session_source_clock(session), err)
  if converted == nil then failure.of(err) end
  return other_clock(session, ffi.gc(converted, C.clock_axis_free))
end

--- Takes the line about the latest change of the clock; nil if there was none.
---@param self Axis
---@return string?
function axis.notice(self)
  if not self.converted then return end
  local text = ffi.string(C.clock_axis_take_notice(self.converted))
  return text ~= '' and text or nil
end

--- Returns a line about the error of the times printed so far; nil if they were exact.
---@param self Axis
---@return string?
function axis.error_text(self)
  local ns = self.converted and C.clock_axis_error(self.converted) or 0
  return ns > 0 and ('the printed times are right to within %.0f ns'):format(math.ceil(ns)) or nil
end

return axis
