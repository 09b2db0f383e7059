-- SPDX-License-Identifier: GPL-2.0-only
-- The decisions of the profiler watchdog on made-up times, because nothing may lock up here (a guest may: tests/guest).
local fs = require 'lib.fs'
local PERIOD, SLACK = 10 * 4e8, 2e8
--- A kernel whose watchdog watches two CPUs; that of this machine may be off.
local KERNEL = {
  ['/proc/sys/kernel/watchdog'] = '1', ['/proc/sys/kernel/watchdog_thresh'] = '10',
  ['/proc/sys/kernel/watchdog_cpumask'] = '0-1', ['/sys/devices/system/cpu/online'] = '0-1',
}

--- Starts the profiler; returns its handlers by subject, the list of its output, and the rows for metrics.
local function start()
  local printed, offered = {}, {}
  local out = {
    format = 'json',
    record = function(_, what, fields) printed[#printed + 1] = what .. fields.cpu end,
    offer = function(_, _, rows)
      for _, row in ipairs(rows) do offered[#offered + 1] = row end
    end,
    seconds = function(_, at) return at / 1e9 end,
  }
  local look = { class = 8 }
  local session = { supports = function() return false end, event = function() return look end }
  local profiler = assert(loadfile 'scripts/profilers/watchdog.lua')()
  local handlers = profiler.start({ freq = 10, verbose = 0 }, out, session)
  local by = { look = handlers[look], lost = handlers.lost, interval = handlers.interval }
  for key, handler in pairs(handlers) do
    if type(key) == 'string' and key:find ':' then by[key:match 'hrtimer' and 'timer' or 'thread'] = handler end
  end
  return by, printed, offered
end

local function at(cpu, time) return { _cpu = cpu, _time = time, _pid = 1, _comm = 'x' } end

describe('watchdog', function()
  local line = fs.line
  setup(function() fs.line = function(path) return KERNEL[path] end end)
  teardown(function() fs.line = line end)

  it('reports a timer that does not expire, on its own CPU', function()
    local by, printed = start()
    by.look(at(0, 10 * PERIOD)) -- nothing is known yet
    by.timer(at(0, 10 * PERIOD))
    by.timer(at(1, 10 * PERIOD))
    by.look(at(0, 11 * PERIOD + SLACK))
    assert.same({}, printed)
    by.look(at(0, 11 * PERIOD + SLACK + 1))
    assert.same({ 'hard lockup0' }, printed)
    by.thread(at(0, 12 * PERIOD))
    by.timer(at(0, 12 * PERIOD))
    by.thread(at(1, 12 * PERIOD))
    by.timer(at(1, 12 * PERIOD))
    by.look(at(0, 13 * PERIOD))
    assert.equal(1, #printed)
  end)

  it('reports a timer that does not expire, on other CPUs', function()
    local by, printed = start()
    by.timer(at(0, 0))
    by.timer(at(1, 0))
    for i = 1, 20 do
      by.look(at(0, 2 * PERIOD + i * 1e7))
    end
    local of_1 = 0
    for _, what in ipairs(printed) do of_1 = of_1 + (what == 'hard lockup1' and 1 or 0) end
    assert.equal(1, of_1) -- of the second look, not of each
    by.timer(at(1, 2 * PERIOD + 3e8))
    by.look(at(0, 2 * PERIOD + 4e8))
    by.look(at(0, 2 * PERIOD + 6e8))
    for _, what in ipairs(printed) do of_1 = of_1 - (what == 'hard lockup1' and 1 or 0) end
    assert.equal(0, of_1)
  end)

  it('forgets its state after lost events', function()
    local by, printed = start()
    by.timer(at(0, 0))
    by.lost {}
    by.look(at(0, 10 * PERIOD))
    assert.same({}, printed)
  end)

  it('reports a thread that does not run', function()
    local by, printed, offered = start()
    by.timer(at(1, 0))
    by.thread(at(1, 10))
    by.timer(at(1, PERIOD))
    assert.same({}, printed)
    by.timer(at(1, 2 * PERIOD))
    assert.same({ 'soft lockup1' }, printed)
    by.thread(at(1, 2 * PERIOD + 1))
    by.timer(at(1, 3 * PERIOD))
    assert.equal(1, #printed)
    assert.same({}, offered)
    for _ = 1, 2 do by.interval(3 * PERIOD) end
    assert.same({ { kind = 'soft lockup', cpu = 1, predicted = 1 } }, offered)
  end)
end)
