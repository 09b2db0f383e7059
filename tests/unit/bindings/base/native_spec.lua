-- SPDX-License-Identifier: GPL-2.0-only
local native = require 'bindings.base.native'

describe('native.hist', function()
  it('gives exact figures as numbers', function()
    local h = native.hist(5)
    for _, v in ipairs { 1, 5, 6, 7LL, 8ULL, -2 } do h:add(v) end
    assert.same({ count = 6, sum = 27, min = 0, max = 8, over = 3, negative = 1 }, h:stats())
    assert.equal(5, h:quantile(0.5))
  end)

  it('keeps 64-bit values that no number can hold', function()
    local h = native.hist()
    h:add(0x7fffffffffffffffLL)
    assert.equal('9223372036854775807ULL', tostring(h:stats().max))
  end)

  it('knows no threshold by infinity', function()
    local h = native.hist(math.huge)
    h:add(0x7fffffffffffffffLL)
    assert.equal(0, h:stats().over)
  end)

  it('lists powers of two from the first to the last', function()
    local h = native.hist()
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
    local a, b = native.hist(), native.hist()
    a:add(1)
    b:add(3)
    a:merge(b)
    assert.equal(4, a:stats().sum)
  end)
end)

describe('native.hists', function()
  it('allocates what is added to', function()
    local set = native.hists(2)
    assert.is_nil(set:get(1))
    set:add(1, 42)
    assert.equal(42, set:get(1):stats().max)
    assert.has_error(function() set:add(2, 1) end)
    set:clear()
    assert.equal(0, set:get(1):stats().count)
  end)
end)

describe('native.keys', function()
  it('gives equal keys equal ids, whatever their type', function()
    local keys = native.keys(1, 100)
    assert.equal(0, keys.id(5))
    assert.equal(0, keys.id(5LL))
    assert.equal(0, keys.id(5ULL))
    assert.equal(1, keys.id '5')
    assert.equal(2, keys.id(0xffffffffffffffffULL))
    assert.equal(3, keys.id(-1))
    assert.equal(2, keys.id(0xffffffffffffffffULL))
    assert.equal(4, keys:count())
  end)

  it('reads keys back', function()
    local keys = native.keys(4, 100)
    local id = keys.id('a\0b', -7LL, 0xffff888000000000ULL, 0.5)
    assert.equal('a\0b', keys:part(id, 1))
    assert.equal(-7, keys:part(id, 2))
    assert.equal('18446612682070032384ULL', tostring(keys:part(id, 3)))
    assert.equal(0.5, keys:part(id, 4))
    assert.is_nil(keys:part(id, 5))
    assert.is_nil(keys:part(id + 1, 1))
  end)

  it('takes tuples of every length', function()
    for arity = 0, 4 do
      local keys = native.keys(arity, 100)
      assert.equal(0, keys.id(1, 2, 3, 4))
      assert.equal(arity > 0 and 1 or 0, keys.id(2, 2, 3, 4))
      assert.equal(0, keys.id(1, 2, 3, 4))
    end
    assert.error_matches(function() native.keys(5, 1) end, 'at most 4 parts')
  end)

  it('takes nil and booleans by name', function()
    local keys = native.keys(2, 100)
    local id = keys.id(nil, true)
    assert.equal('nil', keys:part(id, 1))
    assert.equal('true', keys:part(id, 2))
  end)

  it('refuses what has no value, and forgets the part before it', function()
    local keys = native.keys(2, 100)
    assert.error_matches(function() keys.id(1, {}) end, 'a table cannot be a key')
    assert.equal(0, keys.id(7, 8))
    assert.equal(7, keys:part(0, 1))
  end)

  it('counts what goes to the overflow bucket', function()
    local keys = native.keys(1, 2)
    for i = 1, 5 do assert.equal(math.min(i - 1, 2), keys.id(i)) end
    assert.equal(3, keys:overflow())
    keys:clear()
    assert.equal(0, keys:overflow())
    assert.equal(0, keys.id(5))
  end)
end)
