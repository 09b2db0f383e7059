-- SPDX-License-Identifier: GPL-2.0-only
local ffi = require 'ffi'
local doubts = require 'bindings.pairs.doubts'

local HERE, THERE = 8, 9
local STAGES = { { { class = HERE } }, { { class = THERE, machine = { index = 1 } } } }

describe('doubts', function()
  local now -- the error of the other machine's clock

  local function counted(steps)
    local d = doubts.new(function(machine) return machine == 0 and 0 or now end, STAGES)
    for _, step in ipairs(steps) do
      local out = ffi.new('struct pair[1]')
      out[0].first_class, out[0].second_class, out[0].ns = HERE, step.second or THERE, step.ns
      now = step.error
      d:count(out, 1)
    end
    return d:text()
  end

  it('do not exist on one machine', function()
    assert.is_nil(doubts.new(function() return 0 end, { { { class = HERE } }, { { class = THERE } } }))
  end)

  it('are pairs that are shorter than the error', function()
    assert.is_nil(counted {})
    assert.is_nil(counted { { ns = 1500, error = 1000 }, { ns = 5, error = 1000, second = HERE } })
    assert.equal('2 of 3 pairs of different machines are shorter than the error of the clocks (2.000 us)',
      counted { { ns = 500, error = 1000 }, { ns = -1500, error = 2000 }, { ns = 1500, error = 1000 } })
  end)

  it('know the error only after the first ping', function()
    local text = '%s pairs of different machines are shorter than the error of the clocks (%s)'
    assert.equal(text:format('1 of 1', 'unknown'), counted { { ns = 1e9, error = math.huge } })
    assert.equal(text:format('2 of 3', '1.000 us, unknown for 1 of them'),
      counted { { ns = 1e9, error = math.huge }, { ns = 500, error = 1000 }, { ns = 5000, error = 1000 } })
    assert.equal(text:format('1 of 2', '1.000 us, unknown for 1 of them'),
      counted { { ns = 1e9, error = math.huge }, { ns = 5000, error = 1000 } })
  end)
end)
