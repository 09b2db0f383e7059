-- SPDX-License-Identifier: GPL-2.0-only
local map = require 'lib.map'

local WIDE = 0xffff888100000008ULL

describe('map', function()
  it('finds equal integers of all types', function()
    local m = map.new()
    m:set(5, 'five')
    m:set(WIDE, 'wide')
    assert.equal('five', m:get(5ULL))
    assert.equal('five', m:get(5LL))
    assert.equal('wide', m:get(0xffff888100000000ULL + 8))
    assert.is_nil(m:get(-0x777eFFFFFFF8LL)) -- the same bits, another number
    assert.is_nil(m:get(WIDE + 1))
    assert.equal(2, m:count())
  end)

  it('keeps apart what differs in one half only', function()
    local m, keys = map.new(), {}
    for high = 0, 3 do
      for low = 0, 3 do keys[#keys + 1] = bit.lshift(0xffff0000ULL + high, 32) + low end
    end
    for i, key in ipairs(keys) do m:set(key, i) end
    for i, key in ipairs(keys) do assert.equal(i, m:get(key)) end
    assert.equal(16, m:count())
  end)

  it('refuses numbers that are not exact', function()
    local m, pairs_of = map.new(), map.new(2)
    for _, key in ipairs { tonumber(WIDE), 2 ^ 53, -2 ^ 53, -2 ^ 63 } do
      assert.has_error(function() m:get(key) end)
      assert.has_error(function() m:set(key, 1) end)
      assert.has_error(function() pairs_of:add(1, key, 1) end)
    end
    m:set(2 ^ 53 - 1, 'largest')
    m:set(0.5, 'half')
    m:set(math.huge, 'infinite')
    assert.equal(3, m:count())
  end)

  it('adds, takes and clears', function()
    local m = map.new()
    assert.equal(1, m:add(WIDE))
    assert.equal(8, m:add(WIDE, 7))
    assert.equal(8, m:take(WIDE))
    assert.is_nil(m:take(WIDE))
    assert.equal(0, m:count())
    m:add('text', 2)
    m:set('text', nil)
    m:set('text', nil)
    assert.equal(0, m:count())
    m:add(1)
    m:clear()
    assert.is_nil(m:get(1))
    assert.equal(0, m:count())
  end)

  it('visits all keys in order', function()
    local m, seen = map.new(), {}
    for _, key in ipairs { WIDE + 1, 'b', 3, WIDE, 1, 'a', true } do m:set(key, 0) end
    m:each(function(key) seen[#seen + 1] = tostring(key) end)
    assert.same({ 'true', '1', '3', 'a', 'b', tostring(WIDE), tostring(WIDE + 1) }, seen)
  end)

  it('refuses keys that cannot be found again', function()
    local ok, message = pcall(map.new().get, map.new(), nil)
    assert.is_false(ok)
    assert.matches('nil cannot be the key of a map', message)
    ok, message = pcall(map.new().get, map.new(), require('ffi').new 'int[1]')
    assert.is_false(ok)
    assert.matches('cannot be the key of a map', message)
  end)

  it('has keys of several parts', function()
    for parts = 2, 4 do
      local m, more = map.new(parts), {}
      for i = 3, parts do more[i - 2] = 'x' end
      local function with(...)
        local all = { ... }
        for i, part in ipairs(more) do table.insert(all, 2 + i, part) end
        return unpack(all)
      end
      m:set(with(1, WIDE, 'one'))
      m:set(with(1, 2, 'two'))
      m:set(with('1', 2, 'three'))
      assert.equal('one', m:get(with(1, WIDE)))
      assert.equal('two', m:get(with(1ULL, 2)))
      assert.equal('three', m:get(with('1', 2)))
      assert.is_nil(m:get(with(2, 1)))
      assert.equal(3, m:count())
      assert.equal('two', m:take(with(1, 2)))
      assert.is_nil(m:take(with(1, 2)))
      m:set(with(1, WIDE, nil))
      m:set(with(7, 7, nil))
      assert.equal(1, m:count())
      assert.equal(1, m:add(with(5, 6)))
      assert.equal(4, m:add(with(5, 6, 3)))
      local seen = {}
      m:each(function(...) seen[#seen + 1] = table.concat({ ... }, ' ') end)
      local middle = ('x '):rep(parts - 2)
      assert.same({ '5 6 ' .. middle .. '4', '1 2 ' .. middle .. 'three' }, seen)
      m:clear()
      assert.equal(0, m:count())
      assert.is_nil(m:get(with(5, 6)))
    end
    assert.has_error(function() map.new(5) end)
    local ok, message = pcall(function() map.new(2):add(1) end)
    assert.is_false(ok)
    assert.matches('nil cannot be the key of a map', message)
  end)
end)
