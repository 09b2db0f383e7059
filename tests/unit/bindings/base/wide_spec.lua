-- SPDX-License-Identifier: GPL-2.0-only
local units = require 'bindings.base.units'
local wide = require 'bindings.base.wide'

describe('64-bit integers', function()
  local VALUES = { 0LL, 1LL, -1LL, 2LL ^ 53, 0x20000000000001LL, -0x20000000000001LL, 0x7fffffffffffffffLL,
    -0x7fffffffffffffffLL - 1, 0x8000000000000000ULL, 0x8000000000000001ULL, 0xffff88812cc73000ULL,
    0xfffffffffffffbffULL, 0xfffffffffffffc00ULL, 0xffffffffffffffffULL }

  it('are two numbers', function()
    for _, value in ipairs(VALUES) do
      local n = tonumber(value)
      local again = wide.whole(n, wide.lacks(value, n))
      assert.equal(units.number(value), units.number(again))
    end
  end)

  it('are in order', function()
    for i = 5, #VALUES do
      assert.is_false(wide.is_less(VALUES[i], VALUES[i]))
      assert.equal(i ~= 6 and i ~= 8, wide.is_less(VALUES[i - 1], VALUES[i]))
    end
  end)

  it('other numbers stay as they are', function()
    for _, n in ipairs { 1.5, -1e300, math.huge, 2 ^ 53 - 1 } do assert.equal(n, wide.whole(n, 0)) end
    assert.is_true(wide.whole(0 / 0, 0) ~= wide.whole(0 / 0, 0))
    assert.equal(2 ^ 64, wide.whole(2 ^ 64 - 2048, 2048)) -- more than 64 bits
    assert.equal(-2 ^ 63, wide.whole(-2 ^ 63, -1))
  end)
end)
