-- SPDX-License-Identifier: GPL-2.0-only
-- Tracks of slices: one for each key, then shared ones; no two slices of a track overlap.
local lanes = require 'lib.export.lanes'

describe('lanes', function()
  it('are those of the keys', function()
    local find = lanes.new()
    local a = find(1, 0, 10)
    assert.equal(1, a.key)
    assert.equal(a, find(1, 10, 20))
    assert.not_equal(a, find(2, 5, 15))
  end)

  it('are shared if slices of a key overlap', function()
    local find = lanes.new()
    local a = find(1, 0, 10)
    local b = find(1, 5, 12)
    assert.not_equal(a, b)
    assert.is_nil(b.key)
    assert.equal(a, find(1, 12, 14))
  end)

  it('are several of a key if its slices are nested', function()
    local find = lanes.new(lanes.NESTED)
    local inner, outer = find(1, 5, 6), find(1, 4, 8)
    assert.not_equal(inner, outer)
    assert.equal(1, outer.key)
    assert.equal(inner, find(1, 9, 10))
    assert.equal(outer, find(1, 8, 11))
    local last
    for depth = 1, lanes.NESTED + 1 do last = find(2, 100 - depth, 100 + depth) end
    assert.is_nil(last.key)
  end)

  it('never overlap, whatever the keys are', function()
    local find, last, n, refused = lanes.new(), {}, 0, 0
    math.randomseed(5)
    for to = 1, 20000 do
      local from = to - math.random(1, 4000)
      local lane = find(math.random(1, 3000), from, to)
      if lane then
        assert(from >= (last[lane] or -math.huge), 'an overlap')
        if not last[lane] then n = n + 1 end
        last[lane] = to
      else
        refused = refused + 1
      end
    end
    assert.equal(1000 + 256, n)
    assert.is_true(refused > 0 and refused < 10000)
  end)
end)
