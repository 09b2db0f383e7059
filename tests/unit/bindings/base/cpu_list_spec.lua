-- SPDX-License-Identifier: GPL-2.0-only
local cpu_list = require 'bindings.base.cpu_list'

describe('CPU lists', function()
  it('are written as they are read', function()
    for _, text in ipairs { '0', '0-3', '0-3,7', '1,3,5-6' } do
      local set = {}
      for _, cpu in ipairs(cpu_list.numbers(text)) do set[cpu] = true end
      assert.equal(text, cpu_list.text(set))
    end
    assert.equal('', cpu_list.text {})
  end)

  it('are split into CPUs that are online and others', function()
    assert.same({ '0', '4000-4001' }, { cpu_list.split '4000-4001,0' })
    assert.same({ '0', '' }, { cpu_list.split '0' })
    assert.same({ '', '4095' }, { cpu_list.split '4095' })
  end)
end)
