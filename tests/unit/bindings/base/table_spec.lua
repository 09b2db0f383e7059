-- SPDX-License-Identifier: GPL-2.0-only
local hist = require 'bindings.base.hist'
local tables = require 'lib.table'

local function lines(...) return table.concat({ ... }, '\n') .. '\n' end

local function latency_spec(than)
  local columns = {
    { name = 'start', width = 16, align = 'right' },
    { name = 'end', width = 12, align = 'left', sep = ' => ' },
  }
  for _, column in ipairs(tables.latency_columns(than)) do columns[#columns + 1] = column end
  return tables.new('latency', columns)
end

local ROW = {
  start = 'sched_wakeup',
  ['end'] = 'sched_switch',
  calls = 17965,
  total_ns = 152685382,
  min_ns = 1493,
  p50_ns = 8183,
  p95_ns = 12229,
  p99_ns = 18001,
  max_ns = 1371331,
  than = 2,
}

describe('a latency table', function()
  it('has the usual columns', function()
    assert.equal(lines(
      '           start => end             calls    total      min      p50      p95      p99      max    than(reqs)',
      '----------------    ------------ -------- -------- -------- -------- -------- -------- -------- --------------',
      '    sched_wakeup => sched_switch    17965   153 ms  1.49 us  8.18 us  12.2 us  18.0 us  1.37 ms      2 (  0%)'
    ), tables.render(latency_spec(true), { ROW }))
  end)

  it('leaves out hidden columns', function()
    local text = tables.render(latency_spec(false), { ROW })
    assert.is_nil(text:find('than', 1, true))
    assert.equal(' 1.37 ms\n', text:sub(-9))
  end)

  it('is red on a terminal if the threshold was exceeded', function()
    local spec = latency_spec(true)
    assert.truthy(tables.render(spec, { ROW }, true):find('\27[31m     2 (  0%)\27[m', 1, true))
    ROW.than = 0
    assert.is_nil(tables.render(spec, { ROW }, true):find('\27', 1, true))
    ROW.than = 2
  end)

  it('is filled from a histogram', function()
    local h = hist.new(100)
    for i = 1, 101 do h:add(i) end
    assert.same({ calls = 101, total_ns = 5151, min_ns = 1, p50_ns = 51, p95_ns = 96, p99_ns = 100, max_ns = 101,
      than = 1, avg_ns = 51, variance_ns2 = 850, stddev_ns = math.sqrt(850), latency_ns = h },
      tables.latency_row({}, h))
  end)
end)

describe('columns', function()
  it('are as wide as their cells if no width is given', function()
    local spec = tables.new('t', { { name = 'n' }, { name = 'comm' }, { name = 'last' } })
    assert.equal(lines(
      '   n comm       last',
      '---- ---------- ----',
      '   1 sh         a',
      '1234 systemd-lo bb'
    ), tables.render(spec, { { n = 1, comm = 'sh', last = 'a' }, { n = 1234, comm = 'systemd-lo', last = 'bb' } }))
  end)

  it('grow with a wider cell: the rows stay aligned with their headings', function()
    local spec = tables.new('t', { { name = 'a', width = 4 }, { name = 'b', width = 4 } })
    assert.equal(lines('     a    b', '------ ----', '123456    1', '     2    3'),
      tables.render(spec, { { a = 123456, b = 1 }, { a = 2, b = 3 } }))
  end)

  it('have the decimal points of plain numbers below each other, and the units of others', function()
    local spec = tables.new('t', { { name = 'comm' }, { name = 'sum' }, { name = 'wait', unit = 'ns' } })
    assert.equal(lines(
      'comm       sum    wait',
      '---- --------- -------',
      'a    1403.2877 1.08 s',
      'b       0.526    64 us',
      'c      12       512 ns'
    ), tables.render(spec, { { comm = 'a', sum = 1403.2877, wait = 1084239839 },
      { comm = 'b', sum = 0.526, wait = 64000 }, { comm = 'c', sum = 12, wait = 512 } }))
  end)

  it('may have a unit of each row', function()
    local spec = tables.new('t', { { name = 'n', unit_of = function(row) return row.of end } })
    assert.equal(lines('   n', '-----', '1 MiB', '7'),
      (tables.render(spec, { { n = 2 ^ 20, of = 'bytes' }, { n = 7 } }):gsub('\n +', '\n'):gsub('^%s+', '   ')))
  end)

  it('stand left if they are texts, also where the first row has none', function()
    assert.same('who  n\n--- --\n     1\nbob 22\n',
      tables.render(tables.new('t', { { name = 'who' }, { name = 'n' } }), { { n = 1 }, { who = 'bob', n = 22 } }))
  end)

  it('are as narrow as a terminal needs', function()
    local spec = tables.new('t', { { name = 'k' }, { name = 'n', width = 9 } })
    local row = { k = ('p'):rep(15), n = 12345 }
    assert.equal(lines('k                       n', '--------------- ---------', row.k .. '     12345'),
      tables.render(spec, { row }, false, 25))
    assert.equal(lines('k                   n', '--------------- -----', row.k .. ' 12345'),
      tables.render(spec, { row }, false, 24))
  end)

  it('are also cut if their texts are at the right', function()
    local spec = tables.new('t', { { name = 'k', align = 'right' }, { name = 'n' } })
    assert.equal(lines('              k     n', '--------------- -----', 'pppppppppppppp… 12345'),
      tables.render(spec, { { k = ('p'):rep(18), n = 12345 } }, false, 21))
  end)

  it('are cut where a terminal ends, the widest text first', function()
    local spec = tables.new('t', { { name = 'k' }, { name = 'n' }, { name = 'path' } })
    local row = { k = ('ä'):rep(30), n = 12345, path = ('p'):rep(20) }
    assert.equal(lines(
      'k                  n path',
      '-------------- ----- --------------',
      ('ä'):rep(13) .. '… 12345 ' .. ('p'):rep(13) .. '…'
    ), tables.render(spec, { row }, false, 35))
    assert.truthy(tables.render(spec, { row }):find(row.k, 1, true))
    local narrow = tables.render(spec, { row }, false, 10)
    assert.truthy(narrow:find(('ä'):rep(11) .. '… 12345 ' .. ('p'):rep(11) .. '…', 1, true))
  end)

  it('lack columns on a terminal that is too narrow for them, but the one that rows are sorted by', function()
    local columns = {}
    for i, name in ipairs { 'k', 'min', 'p50', 'p95', 'max' } do columns[i] = { name = name } end
    local spec = tables.new('t', columns)
    local row = { k = ('p'):rep(15), min = 1, p50 = 5, p95 = 9, max = 10 }
    local function heading(width, by)
      return tables.render(spec, tables.sorted(spec, { row }, by), false, width):match '[^\n]+'
    end
    assert.equal('k            min p50 p95 max', heading(28, 'k'))
    assert.equal('k               p50 p95 max', heading(27, 'k'))
    assert.equal('k             p50 max', heading(21, 'k'))
    assert.equal('k               min max', heading(23, 'min'))
    assert.equal('k            max', heading(1, 'k'))
  end)

  it('can be what rows are sorted by', function()
    local spec = tables.new('t', { { name = 'pid', metric = 'label' }, { name = 'comm' },
      { name = 'max_ns', title = 'max(us)' } })
    local rows = { { pid = 2, comm = 'b', max_ns = 5 }, { pid = 1, comm = 'c', max_ns = 5ULL },
      { comm = 'all', max_ns = 99, is_total = true }, { pid = 3, comm = 'a', max_ns = 7 } }
    local function order(by)
      local comms = {}
      for i, row in ipairs(tables.sorted(spec, rows, by)) do comms[i] = row.comm end
      return table.concat(comms, ' ')
    end
    assert.equal('a b c all', order 'max')
    assert.equal('a b c all', order 'max(us)')
    assert.equal('a b c all', order 'MAX_NS')
    assert.equal('c b a all', order 'pid')
    assert.equal('a b c all', order 'comm')
    assert.equal('b c all a', order 'min')
    spec.is_ordered = true
    assert.equal('b c all a', order 'max')
  end)

  it('count characters, not bytes', function()
    local spec = tables.new('t', { { name = 'a', align = 'right' } })
    assert.equal(lines('   a', '----', '   ü', 'abcd'), tables.render(spec, { { a = 'ü' }, { a = 'abcd' } }))
  end)

  it('escape control sequences of the terminal', function()
    local spec = tables.new('t', { { name = 'a' } })
    assert.equal(lines('a', '-------', 'x\\x1b[m'), tables.render(spec, { { a = 'x\27[m' } }))
    spec = tables.new('t', { { name = 'a', text = function(row) return row.a .. '\n' end } })
    assert.truthy(tables.render(spec, { { a = 'x' } }):find('x\\x0a', 1, true))
  end)

  it('print no NaN, no infinity, and nothing for nil', function()
    local spec = tables.new('t', { { name = 'a', format = '%.1f' }, { name = 'b' }, { name = 'c' }, { name = 'd' } })
    assert.equal(lines('a b c d', '- - - -', '- -   1'), tables.render(spec, { { a = 0 / 0, b = math.huge, d = 1 } }))
  end)

  it('cannot have one name twice', function()
    assert.error_matches(function() tables.new('t', { { name = 'a' }, { name = 'a' } }) end,
      "table 't' already has a column 'a'")
    assert.error_matches(function() tables.new('t', { { name = 'time' } }) end, "table 't' already has")
  end)
end)
