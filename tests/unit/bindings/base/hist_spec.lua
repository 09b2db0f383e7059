-- SPDX-License-Identifier: GPL-2.0-only
local hist = require 'bindings.base.hist'

describe('histograms', function()
  it('gives exact values as numbers', function()
    local h = hist.new(5)
    for _, v in ipairs { 1, 5, 6, 7LL, 8ULL, -2 } do h:add(v) end
    local stats = h:stats()
    assert.near(107 / 12, stats.variance, 1e-12)
    assert.equal(math.sqrt(stats.variance), stats.stddev)
    stats.variance, stats.stddev = nil, nil
    assert.same({ count = 6, sum = 27, min = 0, max = 8, over = 3, negative = 1, avg = 4.5 }, stats)
    assert.equal(5, h:quantile(0.5))
  end)

  it('keeps 64-bit values that are not exact as numbers', function()
    local h = hist.new()
    h:add(0x7fffffffffffffffLL)
    assert.equal('9223372036854775807LL', tostring(h:stats().max))
    assert.equal('-9223372036854775807LL', tostring(-h:quantile(1)))
  end)

  it('takes unsigned values', function()
    local h, set = hist.new(), hist.set(1)
    for _, value in ipairs { 0xffff888000000000ULL, 1e300, math.huge, 2 ^ 63 + 2048 } do
      h:add(value)
      set:add(0, value)
    end
    for _, one in ipairs { h, set:get(0) } do
      assert.same({ { exponent = 63, count = 4 } }, one:log2())
      assert.equal(0x8000000000000800ULL, one:stats().min)
      assert.equal(0xffffffffffffffffULL, one:stats().max)
      assert.equal('nan', tostring(one:stats().sum):match 'nan') -- it has more than 64 bits
    end
    assert.has_error(function() h:add(0 / 0) end, 'hist:add takes a number, not nan')
  end)

  it('takes infinity for no threshold', function()
    local h = hist.new(math.huge)
    h:add(0x7fffffffffffffffLL)
    assert.equal(0, h:stats().over)
  end)

  it('lists powers of two from the first to the last', function()
    local h = hist.new()
    assert.same({}, h:log2())
    for _, v in ipairs { 2, 3, 16 } do h:add(v) end
    assert.same({
      { exponent = 1, count = 2 },
      { exponent = 2, count = 0 },
      { exponent = 3, count = 0 },
      { exponent = 4, count = 1 },
    }, h:log2())
    h:clear()
    h:add(-1)
    h:add(0)
    assert.same({ { exponent = 'negative', count = 1 }, { exponent = 'zero', count = 1 } }, h:log2())
  end)

  it('merges', function()
    local a, b = hist.new(), hist.new()
    a:add(1)
    b:add(3)
    a:merge(b)
    assert.equal(4, a:stats().sum)
  end)
end)

describe('sets of histograms', function()
  it('allocates only the histograms that are used', function()
    local set = hist.set(2)
    assert.is_nil(set:get(1))
    set:add(1, 42)
    assert.equal(42, set:get(1):stats().max)
    assert.has_error(function() set:add(2, 1) end)
    set:clear()
    assert.equal(0, set:get(1):stats().count)
  end)
end)
