-- SPDX-License-Identifier: GPL-2.0-only
local wait_totals = require 'lib.engines.off_cpu.wait_totals'

describe('wait_totals', function()
  local function text_of(totals)
    return totals:entries(function(id) return { name = totals:part(id, 1) }, tostring(totals:part(id, 1)) end)
  end

  it('adds up entries with the same text, longest first', function()
    local totals = wait_totals.new()
    totals:add(totals.id(1, 0, 0, 0), 5, 1, 5)
    totals:add(totals.id(2, 0, 0, 0), 7, 1, 7)
    totals:add(totals.id(1, 9, 0, 0), 4, 2, 3)
    assert.same({ { name = 1, total_ns = 9, count = 3, max_ns = 5 },
      { name = 2, total_ns = 7, count = 1, max_ns = 7 } }, text_of(totals))
  end)

  it('says what there was no room for', function()
    local totals, lines = wait_totals.new(), {}
    local out = { warn = function(_, line) lines[#lines + 1] = line end }
    for i = 1, 65536 + 3 do totals:add(totals.id(i, 0, 0, 0), 1000, 1, 1000) end
    assert.equal(65536, #text_of(totals))
    totals:finish(out, 'lock')
    assert.same({ 'lock: there are more than 65536 entries: 3 us of waits are left out' }, lines)
    assert.same({}, text_of(totals))
    totals:finish(out, 'lock')
    assert.equal(1, #lines)
  end)
end)
