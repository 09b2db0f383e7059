-- SPDX-License-Identifier: GPL-2.0-only
-- Times on CPUs that cannot be: all tasks together have run for longer than the CPUs could.
local cpu_clock = require 'bpf.ways.cpu_clock'
local figures = require 'bindings.report.figures'

local function differences(added) return figures.differences({ cpu_clock.figures('0-1', 1e9, added, 'states') }, {}) end

describe('times on CPUs', function()
  it('are at most those of all CPUs', function()
    assert.same({}, differences(0))
    assert.same({}, differences(2e9))
  end)

  it('were added twice if they are more', function()
    assert.same({ '2400000000 ns on CPUs were read, which is 400000000 more than the clock counted' },
      differences(2.4e9))
  end)
end)
