-- SPDX-License-Identifier: GPL-2.0-only
--- Times, and the end of the run.
local check = require 'bindings.base.check'
local doubts = require 'bindings.pairs.doubts'
local ffi = require 'ffi'
local sys = require 'bindings.base.sys'

local C = ffi.C
local times = {}

--- Adds the functions.
---@param api Session
---@param of SessionParts
function times.add(api, of)
  local run, session = of.run, of.run.session
  local clock, error_between = ffi.new 'struct session_clock', doubts.between(run)

  --- Returns how far the time between two events may be off because they are of different machines (`pull=`). If the
  --- events are closer together, it is not known which came first.
  ---@param first_class integer `class` of the one event
  ---@param second_class integer `class` of the other event
  ---@return number ns 0 if both are of the same machine
  function api.clock_error(first_class, second_class)
    check.is(first_class, 'number', 'session.clock_error takes the class of an event')
    check.is(second_class, 'number', 'session.clock_error takes the classes of two events')
    return error_between(first_class, second_class)
  end

  --- Returns the current time on the scale of `ev._time`. Only for live events.
  ---@return number ns
  function api.now()
    C.session_read_clock(session, clock)
    return sys.now(clock.base)
  end

  --- Returns the zero of `ev._time` on the clock of the events, as printed by perf. It is known after the first event.
  ---@return number ns
  function api.time_base()
    C.session_read_clock(session, clock)
    return clock.base
  end

  --- Returns a time as it is printed with events in JSON and CSV: in seconds, or with --tsc in cycles.
  ---@param time number ns, as in `ev._time`
  ---@return number|integer64
  function api.printed_time(time)
    check.is(time, 'number', 'session.printed_time takes a time')
    return run.axis.value(time)
  end

  --- Ends the run: handlers get no more events, only `stop` is called.
  function api.stop()
    run:stop()
    run.stopped[0] = 1
  end
end

return times
