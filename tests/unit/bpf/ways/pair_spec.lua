-- SPDX-License-Identifier: GPL-2.0-only
-- The account of pairs in the kernel, with what programs have counted, and with sums that are wrong.
local figures = require 'bindings.report.figures'
local pair = require 'bpf.ways.pair'

--- Returns the account of 70 ends, of which 60 are in sums, with changes of the counters, the second rule and the plan.
local function account(counters, rule, plan)
  local stats = { pairs = 60, unstarted = 7, mismatched = 3 }
  for name, value in pairs(counters or {}) do stats[name] = value end
  local first, second = { finds = false }, { finds = true }
  for name, value in pairs(rule or {}) do second[name] = value end
  local offer = pair.new { stages = {}, key = (plan or {}).key }
  offer.rules = { [{ attrs = {} }] = first, [{ attrs = {}, is_task_event = second.is_task_event }] = second }
  offer.pairs = { plan = plan or {}, stats = function() return stats end,
    events = function(_, one) return one == second and 70 or 65 end }
  return offer:figures()
end

local function differences(...) return figures.differences({ account(...) }, {}) end

describe('the account of pairs', function()
  it('has each event that may end one', function()
    assert.same({}, differences())
    local f = account()
    assert.equal(70, f.fired)
    assert.equal(70, f.read)
  end)

  it('misses a row that was dropped', function()
    assert.same({ '5 of 70 ends of pairs are missing: programs counted them, but they are in no sum' },
      differences { pairs = 55 })
  end)

  it('sees a row that was added twice', function()
    assert.same({ '73 ends of pairs were read, which is 3 more than programs counted' }, differences { pairs = 63 })
    assert.same({ '73 ends of pairs were read, which is 3 more than programs counted' },
      differences({ pairs = 63 }, { role = {} }))
  end)

  it('does not miss events that need not end one', function()
    assert.same({}, differences({ pairs = 10 }, { role = {} }))
    assert.same({}, differences({ pairs = 10 }, { wakeup = {} }))
    assert.same({}, differences({ pairs = 10 }, nil, { threads = {} }))
    assert.same({}, differences({ pairs = 10 }, nil, { key = 'a / b' }))
    assert.equal(1, #differences({ pairs = 10 }, nil, { key = 'next_pid' }))
  end)

  it('is unknown if nothing is added up, or pairs end without events', function()
    assert.is_nil(account(nil, nil, { only_outliers = true }))
    assert.is_nil(account(nil, { is_task_event = true }))
  end)
end)
