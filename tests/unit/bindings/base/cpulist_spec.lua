-- SPDX-License-Identifier: GPL-2.0-only
local cpulist = require 'bindings.base.cpulist'

describe('CPU lists', function()
  it('are read and written in the same form', function()
    for _, text in ipairs { '0', '0-3', '0-3,7', '1,3,5-6', '' } do
      assert.equal(text, cpulist.text(cpulist.set(text)))
    end
    assert.equal('0-4', cpulist.text(cpulist.set '3-4,0,1-3'))
    assert.same({ 7, 0, 1 }, cpulist.numbers '7,0-1')
  end)

  it('are split into CPUs that are online and others', function()
    local here, missing = cpulist.split '0,4000-4001'
    assert.equal('0', here)
    assert.equal('4000-4001', missing)
    assert.same({ '0', '' }, { cpulist.split '0' })
    assert.same({ '', '4095' }, { cpulist.split '4095' })
  end)
end)
