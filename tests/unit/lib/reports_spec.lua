-- SPDX-License-Identifier: GPL-2.0-only
local reports = require 'lib.reports'

--- Returns a session that counts how often it was stopped.
local function new_session()
  local session = { stops = 0 }
  function session.stop() session.stops = session.stops + 1 end
  return session
end

describe('lib.reports', function()
  it('ends the run after -N reports', function()
    local session, times = new_session(), {}
    local handlers = reports.handlers({ exit_n = 2 }, session, function(time) times[#times + 1] = time end)
    handlers.interval(1)
    assert.equal(0, session.stops)
    handlers.interval(2)
    assert.equal(1, session.stops)
    handlers.stop(3)
    assert.same({ 1, 2 }, times)
  end)

  it('does not count empty reports', function()
    local session, results, calls = new_session(), { false, true, false, true }, 0
    local limited = reports.limited({ exit_n = 2 }, session, function()
      calls = calls + 1
      return results[calls]
    end)
    assert.same({ true, true, true, false, false }, { limited(), limited(), limited(), limited(), limited() })
    assert.equal(4, calls)
  end)

  it('goes on without -N, and keeps other handlers', function()
    local session, own = new_session(), function() end
    local handlers = reports.handlers({}, session, function() end, { own = own })
    for i = 1, 100 do handlers.interval(i) end
    assert.equal(0, session.stops)
    assert.equal(own, handlers.own)
  end)
end)
