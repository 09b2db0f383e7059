-- SPDX-License-Identifier: GPL-2.0-only
-- The account of a run, with figures that are right, and with faults.
local figures = require 'bindings.report.figures'

--- Figures of an event of which 100 fired, and all were used, with changes.
local function event(changes)
  local f = { name = 'a:b', way = 'sample', fired = 100, lost = 0, early = 0, read = 100, rest = 0, is_exact = true,
    per = 1, rejected = { filter = 0, target = 0, gate = 0, limit = 0 }, filters = {} }
  for name, value in pairs(changes or {}) do f[name] = value end
  return f
end

local function rejected(by, n)
  local f = { filter = 0, target = 0, gate = 0, limit = 0 }
  f[by] = n
  return f
end

local function differences(changes, context) return figures.differences({ event(changes) }, context or {}) end

local MISSING = '3 of 100 a:b are missing: the kernel counted them, but wrote no record of them'

describe('differences', function()
  it('are none if all events are accounted for', function()
    assert.same({}, differences())
    assert.same({}, differences { lost = 30, read = 60, early = 4, rest = 6 })
    assert.same({}, differences { rejected = rejected('filter', 100) })
  end)

  it('are events that were dropped', function()
    assert.same({ MISSING }, differences { read = 97 })
    assert.same({ MISSING .. '; --capture bpf may have them' },
      differences({ read = 97, is_tracepoint = true }, { asks_perf = true }))
    assert.same({ MISSING }, differences({ read = 97 }, { asks_perf = true }))
    assert.same({ MISSING }, differences { lost = 30, read = 60, early = 4, rest = 3 })
  end)

  it('are not those that counters have counted when they stopped', function()
    assert.same({}, differences { read = 98, margin = 2 })
    assert.same({ MISSING }, differences { read = 97, margin = 2 })
    assert.same({ '101 a:b were read, which is 1 more than the kernel counted' },
      differences { read = 101, margin = 2 })
  end)

  it('are events that came twice', function()
    assert.same({ '101 a:b were read, which is 1 more than the kernel counted' }, differences { read = 101 })
    assert.same({ '90 a:b were read, which is 5 more than the kernel counted' }, differences { read = 90, lost = 15 })
  end)

  it('are not known where the kernel counts something else than samples', function()
    assert.same({}, differences { fired = 4000, is_exact = false })
    assert.same({}, differences { way = 'recording', fired = false, lost = false, is_exact = false })
  end)

  it('are more samples than can have fired, whatever the kernel counts', function()
    assert.same({}, differences { fired = 101, is_exact = false })
    assert.same({ '102 a:b were read, which is 2 more than the kernel counted' },
      differences { read = 102, is_exact = false })
    assert.same({}, differences { read = 102, is_exact = false, per = false }) -- such as ns of waits
  end)

  it('know what a sample of a period stands for', function()
    assert.same({}, differences { fired = 714, read = 100, per = 7, margin = 2 })
    assert.same({}, differences { fired = 714, read = 70, lost = 20, early = 5, rest = 5, per = 7, margin = 2 })
    assert.same({ '3 samples of a:b are missing: the kernel counted 722 events, and each sample is 7 of them' },
      differences { fired = 722, read = 100, per = 7, margin = 2 })
    assert.same({ '100 samples of a:b were read, which is 1 more than the kernel counted' },
      differences { fired = 699, read = 100, per = 7, margin = 2 })
  end)

  it('are those of sums, whoever has counted them', function()
    local sum = { name = 'events of web1', by = 'the sender', fate = 'they did not arrive' }
    local function of(changes)
      for name, value in pairs(sum) do changes[name] = value end
      return differences(changes)
    end
    assert.same({}, of {})
    assert.same({}, of { read = 90, lost = 10 })
    assert.same({ '2 of 100 events of web1 are missing: the sender counted them, but they did not arrive' },
      of { read = 98 })
    assert.same({ '102 events of web1 were read, which is 2 more than the sender counted' }, of { read = 102 })
  end)

  it('are told for each event', function()
    assert.equal(2, #figures.differences({ event { read = 97 }, event(), event { read = 107 } }, {}))
  end)

  it('are events that interrupted their program', function()
    assert.same({ '2 of 102 a:b are missing: they interrupted the program that takes them' },
      differences { way = 'count', fired = 102, lost = 2, is_missed = true, is_exact = false })
  end)

  it('are those of programs and perf', function()
    assert.same({ 'perf has other figures' }, differences { way = 'count', doubt = 'perf has other figures' })
  end)

  it('are events that perf does not see', function()
    assert.same({ '7 of 107 a:b are hidden from perf; --capture bpf has them' }, differences { hidden = 7 })
    assert.same({ "7 of 107 a:b are hidden from perf by another tracer's BPF program (x, y); --capture bpf has them" },
      differences { hidden = 7, hiders = { 'x', 'y' } })
    assert.same({}, differences { hiders = { 'x' } }) -- it hides nothing
    assert.same({ '7 of 107 a:b are hidden from perf by the kernel (9 happened while their CPU was idle); '
      .. '--capture bpf has them' }, differences { hidden = 7, idle = 9 })
    assert.same({ '7 of 107 a:b are hidden from perf; --capture bpf has them' }, differences { hidden = 7, idle = 6 })
  end)

  it('are times without a counter', function()
    assert.same({}, differences { share = 1, is_exact = false })
    assert.same({ 'a:b was counted for only 99 % of the time: there are more events than counters of the CPU' },
      differences { share = 0.9999, is_exact = false })
  end)
end)

describe('while events happen', function()
  local function overdue(before, now) return figures.overdue(event(before), event(now)) end

  it('those on their way are not missing', function()
    assert.is_nil(overdue({ read = 90 }, { fired = 200, read = 150 }))
    assert.is_nil(overdue({ read = 90 }, { fired = 200, read = 100 }))
    assert.is_nil(overdue({ read = 90 }, { fired = 200, read = 80, lost = 15, early = 5 }))
  end)

  it('those are missing that fired before, but never came', function()
    assert.equal('at least 2 a:b are missing: the kernel counted them, but wrote no record of them',
      overdue({ read = 90 }, { fired = 200, read = 98 }))
  end)

  it('those are missing that programs had counted, but that are in no sum of a later interval', function()
    local function sums(fired, read)
      return event { name = 'ends of pairs', fired = fired, read = read, by = 'programs', fate = 'they are in no sum' }
    end
    assert.is_nil(figures.overdue(sums(100, 80), sums(200, 100)))
    assert.equal('at least 3 ends of pairs are missing: programs counted them, but they are in no sum',
      figures.overdue(sums(100, 80), sums(200, 97)))
    assert.equal('201 ends of pairs were read, which is 1 more than programs counted',
      figures.overdue(sums(100, 80), sums(200, 201)))
  end)

  it('no more can have come than fired by now', function()
    assert.equal('203 a:b were read, which is 4 more than the kernel counted',
      overdue({ read = 90 }, { fired = 200, lost = 1, read = 203 }))
  end)

  it('nothing is said where the kernel counts something else', function()
    assert.is_nil(overdue({ is_exact = false }, { is_exact = false, read = 1 }))
  end)
end)

describe('empty results', function()
  local function causes(list, context)
    for i, changes in ipairs(list) do list[i] = event(changes) end
    return figures.causes(list, context or {})
  end

  it('come from events that did not happen', function()
    assert.equal('no a:b happened', causes { { fired = 0, read = 0 } })
    assert.equal('no a:b happened in the target', causes({ { fired = 0, read = 0 } }, { target = 'the target' }))
    assert.equal('the recording has no a:b', causes({ { read = 0 } }, { is_recorded = true }))
  end)

  it('come from filters', function()
    assert.equal("no a:b passed the filter 'x > 1'", causes { { fired = 0, read = 0, filters = { kernel = 'x > 1' } } })
    assert.equal("the filter 'f(x)' rejected all 100 a:b",
      causes { { rejected = rejected('filter', 100), filters = { user = 'f(x)' } } })
    assert.equal('the condition of irq-off rejected all 100 a:b',
      causes { { rejected = rejected('gate', 100), gate = 'irq-off' } })
    assert.equal('another thread than those of the target had all 100 a:b',
      causes { { rejected = rejected('target', 100) } })
  end)

  it('come from other tracers', function()
    assert.equal("no a:b came from perf, maybe hidden by another tracer's BPF program (x)",
      causes { { fired = 0, read = 0, hiders = { 'x' } } })
    assert.equal('perf sees none of 7 a:b', causes { { fired = 0, read = 0, hidden = 7, hiders = { 'x' } } })
  end)

  it('come from losses', function()
    assert.equal('all 100 a:b were lost', causes { { lost = 100, read = 0 } })
    assert.equal('98 a:b were lost', causes { { lost = 98, read = 0, early = 2 } })
  end)

  it('come from keys that never match', function()
    local function pairs_of(changes)
      local p = { pairs = 0, unstarted = 70, started = 60, firsts = 'a:b', seconds = 'c:d', key = 'x' }
      for name, value in pairs(changes or {}) do p[name] = value end
      return { pairs = p }
    end
    assert.equal('none of 70 c:d had the key x of one of 60 a:b before it', causes({ {} }, pairs_of()))
    assert.equal('none of 5 pairs is one for --than', causes({ {} }, pairs_of { pairs = 5, limit = '--than' }))
    assert.equal("no a:b passed the filter 'x'",
      causes({ {}, { fired = 0, read = 0, filters = { kernel = 'x' } } }, pairs_of()))
  end)

  it('come from numbers of tasks in other namespaces', function()
    local none = { fired = 0, read = 0 }
    local function meaning() return '12 of another pid namespace is 345 (x) here' end
    assert.equal('no a:b happened in the target; 12 of another pid namespace is 345 (x) here',
      causes({ none }, { target = 'the target', meaning = meaning }))
    assert.equal('no a:b happened', causes({ none }, { meaning = meaning }))
    assert.equal('no a:b happened in the target', causes({ none }, { target = 'the target', meaning = function() end }))
    assert.equal('100 a:b were read', causes({ {} }, { target = 'the target', meaning = meaning }))
    local foreign = { foreign_pids = 'fields have other numbers' }
    assert.equal("no a:b passed the filter 'next_pid==12'; fields have other numbers",
      causes({ { fired = 0, read = 0, filters = { kernel = 'next_pid==12' } } }, foreign))
    assert.equal("no a:b passed the filter 'prio<12'",
      causes({ { fired = 0, read = 0, filters = { kernel = 'prio<12' } } }, foreign))
    foreign.pairs = { pairs = 0, unstarted = 7, started = 6, firsts = 'a:b', seconds = 'c:d', key = 'common_pid' }
    assert.equal('none of 7 c:d had the key common_pid of one of 6 a:b before it; fields have other numbers',
      causes({ {} }, foreign))
  end)

  it('may have other causes', function()
    assert.equal('100 a:b were read', causes { {} })
    assert.is_nil(causes { { fired = 100, read = 0 } })
    assert.is_nil(causes {})
  end)

  it('have at most three causes', function()
    local none = { fired = 0, read = 0 }
    assert.equal('no a:b happened; no a:b happened; no a:b happened; and so on for 2 more events',
      causes { none, none, none, none, none })
  end)
end)

describe('all samples', function()
  it('were rejected only if no handler got any', function()
    local none = event { rejected = rejected('filter', 100), filters = { user = 'x' } }
    local function silence(list, context) return figures.silence(list, context or {}) end
    assert.equal("the filter 'x' rejected all 100 a:b", silence { none })
    assert.is_nil(silence { none, event() })
    assert.is_nil(silence { event { fired = 0, read = 0 } })
    assert.equal('perf sees none of 7 a:b', silence { event { fired = 0, read = 0, hidden = 7, hiders = { 'x' } } })
    assert.is_nil(silence { event { rejected = rejected('limit', 100) } })
    local context = { target = 'the target', meaning = function() return '12 is 345' end }
    assert.equal('12 is 345', silence({ event { fired = 0, read = 0 } }, context))
    assert.is_nil(silence({ event() }, context))
  end)
end)

it('the table adds up', function()
  assert.equal([[
event      fired     lost  outside       read   filtered       used way
----- ---------- -------- -------- ---------- ---------- ---------- -------
a:b          100        5        3         92         12         80 sample
c:d            -        -        -         40          0         40 capture
]], figures.text {
    event { lost = 5, early = 1, rest = 2, read = 92, rejected = rejected('filter', 12) },
    { name = 'c:d', way = 'capture', read = 40, rejected = {}, filters = {} },
  })
  assert.equal([[
event      fired     lost  outside       read   filtered       used       perf way
----- ---------- -------- -------- ---------- ---------- ---------- ---------- -------
a:b          100        0        0        100          0        100          - sample
c:d            -        -        -         40          0         40         40 capture
]], figures.text { event(), { name = 'c:d', way = 'capture', read = 40, counted = 40, rejected = {}, filters = {} } })
end)
