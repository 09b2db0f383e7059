-- SPDX-License-Identifier: GPL-2.0-only
local processes = require 'bindings.select.processes'

describe('processes.other_meaning', function()
  it('names four, and says how many there are', function()
    local namesakes, found = processes.namesakes, {}
    finally(function() processes.namesakes = namesakes end)
    processes.namesakes = function() return found end
    assert.is_nil(processes.other_meaning { 1 })
    for i = 1, 6 do
      found[i] = { pid = 100 + i, name = 'x' }
      if i == 1 then assert.equal('1 of another pid namespace is 101 (x) here', processes.other_meaning { 1 }) end
    end
    assert.truthy(processes.other_meaning({ 1 }):find '104 %(x%) here, and so are 2 more$')
  end)
end)
