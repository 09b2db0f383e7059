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
    assert.is_nil(m:get(tonumber(WIDE)))
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
end)
