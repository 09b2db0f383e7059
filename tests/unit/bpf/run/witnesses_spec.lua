-- SPDX-License-Identifier: GPL-2.0-only
-- What perf counts of events that programs take, with figures that are right, and with faults.
local witnesses = require 'bpf.run.witnesses'

local FOUND = { count = 1000, least = 990, most = 1010 } -- ten events as programs began, ten as they ended

local function difference(n, changes)
  local found = {}
  for name, value in pairs(FOUND) do found[name] = value end
  for name, value in pairs(changes or {}) do found[name] = value end
  return witnesses.difference('a:b', n, found)
end

describe('programs and perf', function()
  it('count the same, but for what happened while they began and ended', function()
    for _, n in ipairs { 990, 1000, 1010 } do assert.is_nil(difference(n)) end
  end)

  it('differ if programs drop events', function()
    assert.equal('at least 1 of 990 a:b are missing: perf counted them, but programs did not', difference(989))
    assert.equal('at least 990 of 990 a:b are missing: perf counted them, but programs did not', difference(0))
  end)

  it('may differ where programs check more than the filter that perf has', function()
    assert.is_nil(difference(0, { least = 0 }))
  end)

  it('differ if programs count events twice, or others, or perf does not see all', function()
    assert.equal('2000 a:b were counted by programs, which is 990 more than perf counted: perf does not see them, or '
      .. 'they came twice', difference(2000))
    assert.equal('11 a:b were counted by programs, which is 11 more than perf counted: perf does not see them, or they '
      .. 'came twice', difference(11, { count = 0, least = 0, most = 0 }))
  end)
end)
