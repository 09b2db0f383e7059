-- SPDX-License-Identifier: GPL-2.0-only
-- Routes: what they say about an event, and that only their module writes them.
local route = require 'bpf.plan.route'

describe('a route', function()
  it('is that of perf before there is a plan', function()
    local one = route.new 'a:b'
    assert.same({ event = 'a:b', way = 'sample', by = 'perf', why = {} }, one)
    assert.is_true(route.is_read(one))
    assert.is_false(route.is_filtered(one))
  end)

  it('has no other fields', function()
    assert.has_error(function() route.write(route.new 'a:b', { taken = true }) end, 'taken')
  end)

  it('tells which events the session reads', function()
    local one = route.new 'a:b'
    route.follow(one, { way = 'pair', by = 'BPF', does = 'paired' })
    assert.is_false(route.is_read(one))
    assert.is_true(route.is_filtered(one))
    route.write(one, { sent = 'those over 1 ms are sent' })
    assert.is_true(route.is_read(one))
  end)

  it('forgets the program of an offer that was refused', function()
    for by, program in pairs { BPF = 'ps_count_switch', perf = false } do
      local one = route.new 'a:b'
      route.write(one, { program = 'ps_count_switch' })
      route.follow(one, { by = by })
      assert.equal(program or nil, one.program)
    end
  end)

  it('tells which conditions programs check', function()
    for level, is_filtered in pairs { guards = true, all = true, kernel = false } do
      local one = route.new 'a:b'
      route.write(one, { way = 'capture', level = level, is_captured = true })
      assert.equal(is_filtered, route.is_filtered(one), level)
      assert.is_true(route.is_read(one))
      route.release(one)
      assert.is_nil(one.is_captured)
    end
  end)

  it('is written by its module only', function()
    local pipe = assert(io.popen [[grep -rnE 'route\.[a-z_]+ = ' --include=*.lua bindings bpf scripts]])
    for line in pipe:lines() do assert(line:match '^bpf/plan/route%.lua:', line) end
    pipe:close()
  end)
end)
