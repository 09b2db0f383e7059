-- SPDX-License-Identifier: GPL-2.0-only
-- The messages about lost events, and when they are printed.
local ffi = require 'ffi'
local loss = require 'bindings.report.loss'

--- The warnings after losses { time in s, n, cpu }.
local function warnings(opt, losses, at_end)
  local lines = {}
  for name, value in pairs { lost = 'warn', verbose = 0, mmap_pages = 8 } do
    if opt[name] == nil then opt[name] = value end
  end
  local l = loss.new('top', opt, { warn = function(_, line) lines[#lines + 1] = line end },
    { unit = 's', value = function(time) return (10e9 + time) / 1e9 end },
    function(member) return member > 0 and 'host' .. member or nil end)
  for _, one in ipairs(losses) do
    local e = ffi.new 'struct event'
    e.time, e.period, e.cpu, e.tid, e.key = one[1] * 1e9, one[2], one[3] or -1, one[4] or -1,
      one[1] * 1e9 + 5e3
    e.flags = (one.member or 0) * 256
    l:note(e)
    l:poll()
  end
  if at_end then at_end(l) end
  return lines
end

describe('losses', function()
  it('are reported once a second, with their sum', function()
    assert.same({ 'top: lost 5 events on CPU #0 between 11.000000 and 11.000005 s (5 in total)',
      'top: lost 7 events on CPU #0 between 11.500000 and 12.000005 s (12 in total)' },
      warnings({}, { { 1, 5, 0 }, { 1.5, 3, 0 }, { 2, 4, 0 } }))
  end)

  it('are reported for the CPUs that lost most', function()
    local losses = { { 1, 1, 9 } }
    for cpu = 0, 6 do losses[#losses + 1] = { 1.5, 10 + cpu, cpu } end
    local lines = warnings({}, losses, function(l) l:report() end)
    assert.equal(6, #lines)
    assert.equal('top: lost 16 events on CPU #6 between 11.500000 and 11.500005 s', lines[2])
    assert.equal('top: lost 13 events on CPU #3 between 11.500000 and 11.500005 s', lines[5])
    assert.equal('top: lost 33 events on 3 other CPUs or threads (92 in total)', lines[6])
  end)

  it('are reported at the end, if not before', function()
    assert.same({ 'top: lost 5 events on an unknown CPU between 11.000000 and 11.000005 s (5 in total)',
      'top: lost 3 events on an unknown CPU between 11.500000 and 11.500005 s (8 in total)' },
      warnings({}, { { 1, 5 }, { 1.5, 3 } }, function(l) l:report() l:report() end))
  end)

  it('are reported one by one with -v', function()
    local at = ' between 11.000000 and 11.000005 s'
    assert.same({ 'top: lost 5 events on CPU #2' .. at, 'top: lost 3 events on thread #7' .. at,
      'top: lost 1 event on an unknown CPU' .. at },
      warnings({ verbose = 1 }, { { 1, 5, 2 }, { 1, 3, -1, 7 }, { 1, 1 } }, function(l) l:report() end))
  end)

  it('name the machine on which they are', function()
    local at = ' between 11.000000 and 11.000005 s'
    assert.same({ 'top: lost 5 events on CPU #2 of host1' .. at, 'top: lost 3 events on host2' .. at,
      'top: lost an unknown number of events on host1' .. at },
      warnings({ verbose = 1 }, { { 1, 5, 2, member = 1 }, { 1, 3, member = 2 }, { 1, 0, member = 1 } }))
  end)

  it('end the run with --lost=error', function()
    local ok, problem = pcall(warnings, { lost = 'error' }, { { 1, 5 } })
    assert.is_false(ok)
    assert.equal('top: lost 5 events; stopped because of --lost=error', tostring(problem))
  end)

  it('are counted with --lost=ignore, and not mentioned', function()
    local total
    assert.same({}, warnings({ lost = 'ignore' }, { { 1, 5 } }, function(l)
      l:report()
      l:advise()
      total = l.total
    end))
    assert.equal(5, total)
  end)

  it('of a CPU that came online are not counted', function()
    assert.same({ 'top: CPU #3 came online; its events before 1.000 s are missing' },
      warnings({}, { { 1, 0, 3 } }))
  end)

  it('are passed to the script', function()
    local got
    warnings({}, {}, function(l)
      l:set_handler(function(gap) got = gap end)
      local e = ffi.new 'struct event'
      e.time, e.period, e.cpu, e.tid, e.key = 10, 2, 1, -1, 20
      l:note(e)
    end)
    assert.same({ lost = 2, from = 10, to = 20, cpu = 1 }, got)
  end)

  it('lead to advice', function()
    assert.equal('top: to lose fewer events, use larger ring buffers (-m 16), -r 1 or a filter',
      warnings({}, { { 1, 5 } }, function(l) l:advise() end)[2])
    assert.same({}, warnings({}, {}, function(l) l:advise() end))
    local function pages(opt, losses)
      local lines = warnings(opt, losses, function(l)
        l:report()
        l:advise()
      end)
      return tonumber(table.concat(lines, '\n'):match '%-m (%d+)')
    end
    -- Enough for all that a ring lost in a second: 100000 records of some 100 bytes are 2700 pages.
    assert.equal(4096, pages({}, { { 1, 100000, 0 } }))
    assert.equal(4096, pages({}, { { 1, 1, 1 }, { 1.1, 50000, 0 }, { 1.2, 50000, 0 } }))
    assert.equal(2048, pages({}, { { 1, 50000, 0 }, { 2.5, 50000, 1 } }))
    assert.equal(4096, pages({ verbose = 1 }, { { 1, 100000, 0 } }))
    assert.equal(16384, pages({ call_graph = true }, { { 1, 100000, 0 } })) -- stacks take more
    assert.equal(32768, pages({}, { { 1, 1e9, 0 } })) -- there is an end
    assert.equal(2 ^ 17, pages({ mmap_pages = 2 ^ 16 }, { { 1, 1, 0 } }))
    assert.equal(16, pages({}, { { 1, 1, 0 }, { 1, 1e9, 0, member = 1 } }))
  end)

  it('lead to advice about the machine on which they are', function()
    local function advice(losses, is_recorded)
      local lines = warnings({ verbose = 1 }, losses, function(l) l:advise(is_recorded) end)
      return table.concat(lines, '\n', #losses + 1)
    end
    local rings = 'top: to lose fewer events on host1, let the sender use larger ring buffers (-m), -r 1 or a filter'
    local way = 'top: to lose fewer events on the way from host2, let the sender filter them, or write them to a file '
      .. 'to analyze later (--push FILE)'
    assert.equal(rings, advice { { 1, 5, 0, member = 1 }, { 1, 5, 1, member = 1 } })
    assert.equal(rings .. '\n' .. way, advice { { 1, 5, 0, member = 1 }, { 1, 5, member = 2 } })
    assert.equal(rings, advice({ { 1, 5, 0, member = 1 }, { 1, 5, 0 } }, true)) -- rings of the past stay as they are
    assert.equal('', advice { { 1, 0, member = 1 } })
  end)
end)
