-- SPDX-License-Identifier: GPL-2.0-only
local nearest = require 'bindings.base.nearest'

describe('nearest', function()
  it('counts edits, a swap of neighbours as one', function()
    assert.equal(0, nearest.distance('', ''))
    assert.equal(3, nearest.distance('', 'abc'))
    assert.equal(3, nearest.distance('kitten', 'sitting'))
    assert.equal(1, nearest.distance('next_pdi', 'next_pid'))
    assert.equal(3, nearest.distance('ca', 'abc'))
  end)

  it('finds the closest name and ignores case', function()
    local names = { 'next_comm', 'next_pid', 'prev_pid' }
    assert.equal('next_pid', nearest.find('next_pdi', names))
    assert.equal('prev_pid', nearest.find('PREV_PID', names))
    assert.equal('next_pid', nearest.find('next_pid', names))
  end)

  it('takes the first of equally close names', function()
    assert.equal('bat', nearest.find('aat', { 'bat', 'cat' }))
    assert.equal('cat', nearest.find('aat', { 'cat', 'bat' }))
  end)

  it('finds nothing when more than a third would change', function()
    assert.is_nil(nearest.find('flags', { 'next_pid' }))
    assert.is_nil(nearest.find('xyz', { 'abc' }))
    assert.equal('pid', nearest.find('pd', { 'pid' }))
    assert.is_nil(nearest.find(('x'):rep(100000), { 'pid' }))
  end)

  it('writes the tail of a message', function()
    assert.equal("; did you mean 'json'?", nearest.hint('jsn', { 'text', 'json', 'csv' }))
    assert.equal('', nearest.hint('qqqq', { 'text', 'json', 'csv' }))
  end)

  it('sorts the names of a table', function()
    assert.same({ 'a', 'b' }, nearest.keys { b = 1, a = 2, [1] = 'c' })
  end)
end)
