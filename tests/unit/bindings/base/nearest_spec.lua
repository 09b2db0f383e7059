-- SPDX-License-Identifier: GPL-2.0-only
local nearest = require 'bindings.base.nearest'

describe('the nearest name', function()
  it('is one of few changes', function()
    assert.equal('next_pid', nearest.find('nxt_pid', { 'prev_pid', 'next_pid' }))
    assert.is_nil(nearest.find('nothing', { 'prev_pid', 'next_pid' }))
  end)

  it('may be the beginning of the word, or begin with it, if only one is', function()
    assert.equal('freq', nearest.find('frequency', { 'period', 'freq' }))
    assert.equal('max-stack-frames', nearest.find('max-stack', { 'period', 'max-stack-frames' }))
    assert.is_nil(nearest.find('sched', { 'sched_switch_1', 'sched_switch_2' }))
    assert.is_nil(nearest.find('abcdefghijkl', { 'abc' }))
  end)

  it('is not worth much time', function()
    local names = {}
    for i = 1, 4e6 do names[i] = 'some_function_of_the_kernel' end
    local start = os.clock()
    assert.is_nil(nearest.find('some_function_zz_zzz_zzzzzz_zzz', names))
    assert.is_true(os.clock() - start < 0.5)
  end)
end)
