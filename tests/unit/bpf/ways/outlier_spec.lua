-- SPDX-License-Identifier: GPL-2.0-only
-- The account of outliers, with counts that are right, and with faults.
local figures = require 'bindings.report.figures'
local outlier = require 'bpf.ways.outlier'

--- Returns the differences of 10 outliers of which all came, with changes.
local function differences(changes)
  local n = { found = 10, over = 10, sent = 10, rest = 0, lost = 0, rejected = {}, may_be_left = false }
  for name, value in pairs(changes or {}) do n[name] = value end
  return figures.differences({ outlier.figures(n) }, {})
end

local MISSING = '1 of 10 outliers are missing: programs counted them, but they did not come'

describe('the account of outliers', function()
  it('has each one that programs have found', function()
    assert.same({}, differences())
    assert.same({}, differences { sent = 3, rest = 7 })
    assert.same({}, differences { sent = 3, rejected = { target = 5, filter = 2 } })
  end)

  it('misses one that was dropped on its way', function()
    assert.same({ MISSING }, differences { sent = 9 })
    assert.same({ MISSING }, differences { sent = 2, rejected = { target = 7 } })
  end)

  it('sees one that came twice', function()
    assert.same({ '11 outliers were read, which is 1 more than programs counted' }, differences { sent = 11 })
    assert.same({ '11 outliers were read, which is 1 more than programs counted' },
      differences { sent = 11, may_be_left = true })
  end)

  it('sees a limit that lets others pass than the one of the sums', function()
    assert.same({ '10 outliers were sent, but 12 are in the sums' }, differences { over = 12 })
    assert.same({ '10 outliers were sent, but 0 are in the sums' }, differences { over = 0 })
    assert.same({}, differences { over = false }) -- they have another limit
  end)

  it('misses none that were lost, or that an exit has left', function()
    assert.same({}, differences { sent = 6, lost = 4 })
    assert.same({}, differences { sent = 9, may_be_left = true })
  end)
end)
