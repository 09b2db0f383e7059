-- SPDX-License-Identifier: GPL-2.0-only
local twins = require 'lib.engines.twins'

local FIELDS = { pid = { size = 4, count = 1 } }

--- Returns whether two events of the same tracepoint, CPU and fields are records of the same occurrence.
local function are_twins(a, b)
  local list = { { { _cpu = 0, pid = 1 }, a }, { { _cpu = 0, pid = 1 }, b } }
  local found = twins.find({ at = function(_, i) return unpack(list[i + 1]) end }, 0, 2, {})
  return found[0] == found[1]
end

describe('twins', function()
  it('are records of two events of one tracepoint', function()
    assert.is_true(are_twins({ name = 'x:a', fields = FIELDS }, { name = 'x:a', fields = FIELDS }))
    local machine = { index = 1 }
    assert.is_true(are_twins({ name = 'x:a', fields = FIELDS, machine = machine },
      { name = 'x:a', fields = FIELDS, machine = machine }))
  end)

  it('are of one machine', function()
    assert.is_false(are_twins({ name = 'x:a', fields = FIELDS, machine = { index = 1 } },
      { name = 'x:a', fields = FIELDS }))
    assert.is_false(are_twins({ name = 'x:a', fields = FIELDS, machine = { index = 1 } },
      { name = 'x:a', fields = FIELDS, machine = { index = 2 } }))
  end)
end)
