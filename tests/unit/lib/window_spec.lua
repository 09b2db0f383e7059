-- SPDX-License-Identifier: GPL-2.0-only
local window = require 'lib.window'

describe('window', function()
  it('forgets what is older than its length and a tenth', function()
    local w = window.new(1000)
    for time = 0, 9999 do w:add(time, 2) end
    assert.is_true(w:count() >= 1000 and w:count() <= 1100)
    assert.equal(2 * w:count(), w:sum())
    assert.is_true(math.abs(w:rate() - 1e9) < 0.01e9)
    w:add(50000, 1)
    assert.equal(1, w:count())
    assert.equal(1, w:sum())
  end)

  it('knows the rate before it is full', function()
    local w = window.new '1s'
    for i = 0, 100 do w:add(5e9 + i * 1e6) end
    assert.is_true(math.abs(w:rate() - 1000) < 20)
  end)

  it('has moving quantiles, without the current tenth', function()
    local w = window.new(1000)
    assert.is_nil(w:quantile(0.5))
    for time = 0, 98 do w:add(time, 10) end
    assert.is_nil(w:quantile(0.5))
    w:add(100, 99999)
    assert.equal(10, w:quantile(0.5))
    assert.equal(10, w:quantile(1))
    for time = 200, 2000 do w:add(time, 1000) end
    assert.is_true(math.abs(w:quantile(0.5) - 1000) <= 10)
    assert.is_true(math.abs(w:quantile(0) - 1000) <= 10)
  end)

  it('takes late values into its current tenth', function()
    local w = window.new(1000)
    w:add(500, 1)
    w:add(100, 1)
    assert.equal(2, w:count())
  end)

  it('refuses wrong calls', function()
    local _, message = pcall(window.new(1e9).add, window.new(1e9), 'x')
    assert.matches("takes a time %(ev._time%) and a value, not 'x'", message)
    assert.matches('takes the length', select(2, pcall(window.new, {})))
    assert.matches('takes the length', select(2, pcall(window.new, 5)))
  end)
end)
