-- SPDX-License-Identifier: GPL-2.0-only
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local switch = require 'bpf.gen.switch'

describe('the switch of programs', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end

  it('turns them to the other side, and back', function()
    local one = switch.new(nil, 2)
    one:on()
    assert.equal(1, one:turn())
    assert.equal(2, one:turn())
    assert.equal(1, one:off())
  end)

  it('does not let programs begin again that have been stopped', function()
    local one = switch.new({ 0 }, 2)
    one:on()
    one:turn()
    assert.equal(2, one._map.bytes[0])
    one._map.bytes[0] = 0 -- by the session
    one:turn()
    assert.equal(0, one._map.bytes[0])
    one:off()
  end)

  it('does not turn programs whose maps have one side', function()
    local one = switch.new(nil, 1)
    one:on()
    assert.error_matches(function() one:turn() end, 'the maps of the programs have one side')
    assert.equal(1, one:off())
  end)
end)
