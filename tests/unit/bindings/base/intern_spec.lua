-- SPDX-License-Identifier: GPL-2.0-only
local intern = require 'bindings.base.intern'

describe('interned keys', function()
  it('gives equal keys equal ids, whatever their type', function()
    local keys = intern.new(1, 100)
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
    local keys = intern.new(4, 100)
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
      local keys = intern.new(arity, 100)
      assert.equal(0, keys.id(1, 2, 3, 4))
      assert.equal(arity > 0 and 1 or 0, keys.id(2, 2, 3, 4))
      assert.equal(0, keys.id(1, 2, 3, 4))
    end
    assert.error_matches(function() intern.new(5, 1) end, 'takes the number of parts %(an integer from 0 to 4%), not 5')
  end)

  it('takes nil and booleans by name', function()
    local keys = intern.new(2, 100)
    local id = keys.id(nil, true)
    assert.equal('nil', keys:part(id, 1))
    assert.equal('true', keys:part(id, 2))
  end)

  it('tells pairs of numbers apart, also those that take the same place in its cache', function()
    local keys = intern.new(2, 1e6)
    local values = { 0, 1, 2, 31, 4095, 4096, 8192, -1, 0.25, 1.5, 1e15, -1e300, math.huge }
    for _ = 1, 2 do
      local ids, n = {}, 0
      for round = 1, 3 do
        for _, a in ipairs(values) do
          for _, b in ipairs(values) do
            local name = ('%.17g %.17g'):format(a, b)
            if round == 1 then ids[name], n = n, n + 1 end
            assert.equal(ids[name], keys.id(a, b))
          end
        end
      end
      assert.equal(n, keys:count())
      keys:clear()
    end
    assert.equal(0, keys.id('1', 2))
    assert.equal(1, keys.id(1, 2))
  end)

  it('tells keys of three numbers apart, also those that take the same place in its cache', function()
    local keys, values = intern.new(3, 1e6), { 0, 1, 31, 961, 4096, -1, 0.25, 1e15, math.huge }
    for _ = 1, 2 do
      local ids, n = {}, 0
      for round = 1, 2 do
        for _, a in ipairs(values) do
          for _, b in ipairs(values) do
            for _, c in ipairs(values) do
              local name = ('%.17g %.17g %.17g'):format(a, b, c)
              if round == 1 then ids[name], n = n, n + 1 end
              assert.equal(ids[name], keys.id(a, b, c))
            end
          end
        end
      end
      assert.equal(n, keys:count())
      keys:clear()
    end
  end)

  it('refuses parts without a value, and forgets the part before', function()
    local keys = intern.new(2, 100)
    assert.error_matches(function() keys.id(1, {}) end, 'a table cannot be a key')
    assert.equal(0, keys.id(7, 8))
    assert.equal(7, keys:part(0, 1))
  end)

  it('counts values in the overflow bucket', function()
    local keys = intern.new(1, 2)
    for i = 1, 5 do assert.equal(math.min(i - 1, 2), keys.id(i)) end
    assert.equal(3, keys:overflow())
    keys:clear()
    assert.equal(0, keys:overflow())
    assert.equal(0, keys.id(5))
  end)

  it('refuses numbers that are not exact, and keeps 64-bit integers', function()
    for parts = 1, 4 do
      local keys = intern.new(parts, 10)
      assert.has_error(function() keys.id(2 ^ 53, 1, 2, 3) end)
    end
    local keys = intern.new(1, 10)
    for i = 0, 2 do keys.id(2 ^ 53 + 0ULL + i) end
    assert.equal(3, keys:count())
    assert.is_true(keys:part(1, 1) == 9007199254740993LL)
  end)
end)
