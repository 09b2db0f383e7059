-- SPDX-License-Identifier: GPL-2.0-only
local grid = require 'lib.grid'

local events = {
  { name = 'sched:sched_wakeup', alias = 'sched_wakeup', attrs = {} },
  { name = 'sched:sched_switch', alias = 'sw', attrs = { alias = 'sw' } },
}

--- A text output that records, on a terminal with this many columns or none.
local function new_out(columns)
  return {
    format = 'text',
    text = '',
    table = function(self, _, rows, _, shown)
      self.is_empty = #rows == 0
      if #rows > 0 then self.text = self.text .. shown() end
    end,
    columns = function() return columns end,
  }
end

local function new(out, by, cells)
  local interval = 100e6 * cells
  return grid.new { name = 'stat', events = events, period = 100e6, interval = interval, by = by, out = out }
end

describe('lib.grid', function()
  it('prints a line for each event', function()
    local out = new_out()
    local g = new(out, nil, 3)
    g:add(0, 0, 1, 5)
    g:add(0, 1, 1, 1)
    g:add(2, 0, 1, 1000)
    g:add(1, 0, 2, 7)
    assert.is_true(g:print(0))
    local line = '%18s %s | total %d\n'
    local wakeups = line:format('sched:sched_wakeup', '   6|   0|1000', 1006)
    assert.equal(wakeups .. line:format('sw', '   0|   7|   0', 7), out.text)
    assert.is_false(out.is_empty)
    assert.is_false(g:print(0))
    assert.is_true(out.is_empty)
  end)

  it('leaves out an event on a CPU that does not count it', function()
    local out = new_out()
    local g = new(out, 'CPU', 1)
    g:add(0, 0, 1, 5)
    g:add(0, 1, 2, 7)
    g:print(0)
    assert.equal('[000] sched:sched_wakeup 5 | total 5\n[001]                 sw 7 | total 7\n', out.text)
  end)

  it('packs few periods into columns if the terminal is wide enough', function()
    local out = new_out(60)
    local g = new(out, 'CPU', 2)
    g:add(0, 0, 1, 123)
    g:add(1, 0, 1, 4)
    g:add(1, 1, 2, 7)
    g:print(0)
    local lines = { '[CPU] |sched_wakeup|sw     |', '[000] |123 4       |       |', '[001] |            |0   7  |', '' }
    assert.equal(table.concat(lines, '\n'), out.text)
    out = new_out(15)
    g = new(out, nil, 2)
    g:add(0, 0, 1, 1)
    g:print(0)
    assert.equal('sched:sched_wakeup 1|0 | total 1\n', out.text)
    out = new_out(200)
    g = new(out, nil, 6)
    g:add(5, 0, 1, 1)
    g:print(0)
    assert.equal('sched:sched_wakeup 0|0|0|0|0|1 | total 1\n', out.text)
  end)

  it('shows the share of the time in which hardware counted', function()
    local out = new_out()
    local g = new(out, nil, 2)
    g:add(0, 0, 1, 100, 0.5)
    g:add(1, 0, 1, 100, 1)
    g:print(0)
    assert.equal('sched:sched_wakeup 100|100 | total 200 (75%)\n', out.text)
  end)

  it('keeps reports separate', function()
    local out = new_out()
    local g = new(out, nil, 2)
    g:add(1, 0, 1, 3)
    g:add(2, 0, 1, 4)
    assert.equal(1, g:report_of(2))
    g:print(0)
    g:print(1, { last = 2 })
    assert.equal('sched:sched_wakeup 0|3 | total 3\nsched:sched_wakeup 4 | total 4\n', out.text)
  end)
end)
