-- SPDX-License-Identifier: GPL-2.0-only
-- The account of the events that are kept for details, with counts that are right, and with faults.
local figures = require 'bindings.report.figures'
local window = require 'bpf.ways.window'

--- Returns the differences of 100 events on two CPUs.
local function differences(kept, lost) return figures.differences({ window.account(100, kept, lost, 2) }, {}) end

describe('the account of events that are kept for details', function()
  it('finds all in the rings, but for those of programs that were ended', function()
    assert.same({}, differences(100, 0))
    assert.same({}, differences(70, 30))
    assert.same({}, differences(98, 0))
  end)

  it('misses those that were not written', function()
    local line = '%d of 100 events kept for details are missing: programs counted them, but they are not in the rings'
    assert.same({ line:format(50) }, differences(50, 0))
    assert.same({ line:format(4) }, differences(90, 6))
  end)

  it('sees those that were written twice', function()
    assert.same({ '200 events kept for details were read, which is 100 more than programs counted' },
      differences(200, 0))
  end)
end)
