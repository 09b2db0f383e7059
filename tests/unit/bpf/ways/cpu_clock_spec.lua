-- SPDX-License-Identifier: GPL-2.0-only
-- Times on CPUs that cannot be: all tasks together have run for longer than the CPUs could.
local cpu_clock = require 'bpf.ways.cpu_clock'
local figures = require 'bindings.report.figures'

local function differences(added)
  return figures.differences({ cpu_clock.figures('0-1', 1e9, added, 'states') }, {})
end

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

describe('times of processes', function()
  it('are those of their clocks, with processes that have begun meanwhile', function()
    local before, now = { [1] = 5e9, [2] = 1e9, [3] = 7e9 }, { [1] = 6e9, [3] = 7.5e9, [4] = 2e9 } -- 2 has ended
    assert.equal(3.5e9, cpu_clock.least(before, now, true))
    assert.equal(1.5e9, cpu_clock.least(before, now, false))
    assert.equal(0, cpu_clock.least({ [1] = 5e9 }, { [1] = 1e9 }, true)) -- another process with this pid
  end)

  it('were dropped if less was added up', function()
    assert.is_nil(cpu_clock.difference(1e9, 1e9, 0))
    assert.is_nil(cpu_clock.difference(2e9, 1e9, 0)) -- of processes that have ended
    assert.is_nil(cpu_clock.difference(0.7e9, 1e9, 0.3e9))
    assert.equal('at least 500000000 of 1000000000 ns on CPUs are missing: the clocks of processes counted them',
      cpu_clock.difference(0.5e9, 1e9, 0.1e9))
  end)

  it('are at least those of this one', function()
    local clocks = cpu_clock.begin { opt = {} }
    if not clocks then return end -- a machine whose CPUs have no ticks
    local ends, sys = os.clock() + 0.2, require 'bindings.base.sys'
    repeat until os.clock() > ends
    clocks:finish(sys.now())
    assert.is_nil(clocks:difference(1e12))
    assert.is_true(clocks._least >= 0.19e9)
  end)
end)

describe('states of threads', function()
  it('last as long as the threads', function()
    assert.is_nil(cpu_clock.lifetimes(2e9, 2, 1e9))
    assert.is_nil(cpu_clock.lifetimes(2.5e9, 2, 1e9)) -- of threads that have begun or ended
    assert.equal('at least 1000000000 of 2000000000 ns of states are missing: 2 threads existed for that long',
      cpu_clock.lifetimes(1e9, 2, 1e9))
  end)

  it('are those of threads that exist', function()
    local libc = require 'bindings.base.libc'
    assert.equal(1, cpu_clock.alive { libc.getpid(), 2 ^ 30 })
  end)
end)
