-- SPDX-License-Identifier: GPL-2.0-only
-- Items of a timeline page are bounded: short slices are left out, and ticks that are close to another one.
local items = require 'lib.export.timeline_items'

describe('timeline items', function()
  it('are kept as they are while there is room', function()
    local list = items.new 'slices'
    for i = 1, items.MAX do list:add(i, i + 1, i % 7, i % 3) end
    assert.equal(items.MAX, list.n)
    assert.equal(0, list.left_out)
    assert.equal(5, list.from[4])
    assert.equal(6, list.to[4])
    assert.equal(5, list.what[4])
    assert.equal(2, list.row[4])
  end)

  it('are the longest slices if there are too many', function()
    local list, longest, n = items.new 'slices', 0, 3 * items.MAX
    for i = 1, n do
      local is_long = i % 1000 == 0
      if is_long then longest = longest + 1 end
      list:add(i * 10, i * 10 + (is_long and 1e6 or i % 20000), 0, 0)
    end
    assert(list.n <= items.MAX)
    assert.equal(n, list.n + list.left_out)
    local found = 0
    for i = 0, list.n - 1 do
      local ns = list.to[i] - list.from[i]
      assert(ns >= list.minimum, ns)
      if ns == 1e6 then found = found + 1 end
    end
    assert.equal(longest, found)
  end)

  it('are ticks with a distance on their row if there are too many', function()
    local list, n = items.new 'ticks', 3 * items.MAX
    for i = 1, n do list:add(i * 100, i * 100, 0, i % 2) end
    list:add(1e9, 1e9, 1, 0)
    assert(list.n <= items.MAX)
    assert.equal(n + 1, list.n + list.left_out)
    local last = {}
    for i = 0, list.n - 1 do
      local row, from = list.row[i], list.from[i]
      if list.what[i] == 0 and last[row] then assert(from - last[row] >= list.minimum, from) end
      last[row] = from
    end
    assert.equal(1e9, list.from[list.n - 1])
  end)
end)
