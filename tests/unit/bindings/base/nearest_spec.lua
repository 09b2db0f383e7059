-- SPDX-License-Identifier: GPL-2.0-only
local nearest = require 'bindings.base.nearest'

describe('nearest', function()
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

  it('is quick enough for all symbols of a kernel', function()
    local names = {}
    for i = 1, 120000 do names[i] = ('%08x'):format(i * 2654435761 % 2 ^ 32) .. ('_prog_with_a_name'):rep(3) end
    local start = os.clock()
    assert.is_nil(nearest.find('a_symbol_that_this_kernel_does_not_have_in_its_long_list_', names))
    assert.is_true(os.clock() - start < 1) -- 0.1; the whole matrix of each pair takes 1.5
  end)

  it('writes the tail of a message', function()
    assert.equal("; did you mean 'json'?", nearest.hint('jsn', { 'text', 'json', 'csv' }))
    assert.equal('', nearest.hint('qqqq', { 'text', 'json', 'csv' }))
  end)

  it('sorts the names of a table', function()
    assert.same({ 'a', 'b' }, nearest.keys { b = 1, a = 2, [1] = 'c' })
  end)
end)
