-- SPDX-License-Identifier: GPL-2.0-only
local hist = require 'bindings.base.hist'
local prometheus = require 'lib.serve.prometheus'
local registry = require 'lib.serve.registry'
local tables = require 'bindings.base.table'

local clock

local function new(max) return registry.new('my-script', function() return clock end, max) end

--- Returns the lines of a registry without comments.
local function lines(metrics)
  local found = {}
  for line in prometheus.text(metrics):gmatch '[^\n]+' do
    if line:sub(1, 1) ~= '#' then found[#found + 1] = line end
  end
  return found
end

describe('metrics of tables', function()
  before_each(function() clock = 1000 end)

  it('add up counters and replace gauges', function()
    local metrics = new()
    local spec = tables.new('calls', { { name = 'comm' }, { name = 'calls', metric = 'counter' }, { name = 'avg_ns' } })
    metrics:table(spec, { { comm = 'a', calls = 3, avg_ns = 1500 }, { comm = 'b', calls = 1, avg_ns = 1 } })
    metrics:next_report()
    metrics:table(spec, { { comm = 'a', calls = 4, avg_ns = 8713 } })
    assert.same({
      'profscript_my_script_calls_total{comm="a"} 7',
      'profscript_my_script_calls_total{comm="b"} 1',
      'profscript_my_script_calls_avg_seconds{comm="a"} 8.713e-06',
    }, lines(metrics))
    metrics:next_report()
    metrics:table(spec, {})
    assert.equal(2, #lines(metrics)) -- no report about b and a
  end)

  it('have the base unit of a column', function()
    local metrics = new()
    metrics:table(tables.new('t', { { name = 'busy', unit = 'ms', metric = 'counter' }, { name = 'size', unit = 'kb' },
      { name = 'place', unit = 'address' } }), { { busy = 1500, size = 2, place = 3 } })
    assert.same({ 'profscript_my_script_t_busy_seconds_total 1.5', 'profscript_my_script_t_size_bytes 2048',
      'profscript_my_script_t_place 3' }, lines(metrics))
  end)

  it('tell of rows that replace each other', function()
    local metrics = new()
    local function report(columns, ...)
      local spec = tables.new('t', columns)
      metrics:table(spec, { ... })
      metrics:next_report()
      local replaced = metrics.replaced.t
      metrics.replaced = {}
      return replaced
    end
    local columns = { { name = 'comm' }, { name = 'load' } }
    assert.equal(nil, report(columns, { comm = 'a', load = 1 }, { comm = 'b', load = 2 }))
    assert.equal(nil, report(columns, { comm = 'a', load = 1 })) -- another report
    assert.equal('comm', report(columns, { comm = 'a', load = 1 }, { comm = 'a', load = 2 }))
    assert.equal('', report({ { name = 'load' } }, { load = 1 }, { load = 2 }))
    assert.equal(nil, report({ { name = 'n', metric = 'counter' }, { name = 'x', adds_up = true } },
      { n = 1, x = 1 }, { n = 2, x = 2 }))
    assert.equal(nil, report({ { name = 'oldest' }, { name = 'stack' } },
      { oldest = 1, stack = { 'f' } }, { oldest = 2, stack = { 'g' } }))
    metrics:table(tables.new('t', columns), { { comm = 'a', load = 1 } }, true) -- printed for an event
    metrics:table(tables.new('t', columns), { { comm = 'a', load = 2 } }, true)
    assert.equal(nil, metrics.replaced.t)
  end)

  it('take ids and text as labels, and everything else as gauges', function()
    local metrics = new()
    local spec = tables.new('my-script', { { name = 'pid' }, { name = 'next_cpu' }, { name = 'load' },
      { name = 'util', title = 'UTIL%' }, { name = 'stack' }, { name = 'size_kb' } })
    metrics:table(spec, { { pid = 2 ^ 31, next_cpu = 1, load = 2.5, util = 50, stack = { 'f', 'g' }, size_kb = 2 } })
    assert.same({
      'profscript_my_script_load{pid="2147483648",next_cpu="1"} 2.5',
      'profscript_my_script_util_ratio{pid="2147483648",next_cpu="1"} 0.5',
      'profscript_my_script_size_bytes{pid="2147483648",next_cpu="1"} 2048',
    }, lines(metrics))
  end)

  it('escape labels', function()
    local metrics = new()
    metrics:table(tables.new('x', { { name = 'comm' }, { name = 'le' }, { name = 'n', metric = 'counter' } }),
      { { comm = 'a"b\\c\n\255', le = 'x', n = 1 } })
    assert.same({ [[profscript_my_script_x_n_total{comm="a\"b\\c\\x0a\\xff",le_="x"} 1]] }, lines(metrics))
  end)

  it('say the unit of a column once, and no total of seconds', function()
    local metrics = new()
    metrics:table(tables.new('my-script', { { name = 'max_ns', unit = 'ns' }, { name = 'size_kb', unit = 'bytes' },
      { name = 'total_ns', unit = 'ns', metric = 'counter' }, { name = 'total', metric = 'counter' } }),
      { { max_ns = 5, size_kb = 2, total_ns = 1e9, total = 3 } })
    assert.same({ 'profscript_my_script_max_seconds 5e-09', 'profscript_my_script_size_kb_bytes 2',
      'profscript_my_script_seconds_total 1', 'profscript_my_script_total 3' }, lines(metrics))
  end)

  it('have histograms of negative numbers beside those of others', function()
    local metrics, positive, negative = new(), hist.new(), hist.new()
    local spec = tables.new('my-script', { { name = 'event' }, { name = 'value', metric = 'histogram' } })
    for _, value in ipairs { 0, 5, 5 } do positive:add(value) end
    for _, value in ipairs { 2, 7 } do negative:add(value) end
    metrics:table(spec, { { event = 'both', value = { positive = positive, negative = negative } },
      { event = 'below', value = { negative = negative } } })
    local found = {}
    for _, line in ipairs(lines(metrics)) do
      local name, value = line:match '^profscript_my_script_(%l+{.*}) (%S+)$'
      if not name:find 'le="%d%d' then found[name] = tonumber(value) end
    end
    local labels = 'bucket{event="%s",le="%s"}'
    assert.equal(3, found[labels:format('both', '0')])
    assert.equal(3, found[labels:format('both', '3')])
    assert.equal(5, found[labels:format('both', '7')])
    assert.equal(2, found[labels:format('below', '0')])
    assert.equal(1, found['sum{event="both"}'])
    assert.equal(5, found['count{event="both"}'])
    assert.equal(-9, found['sum{event="below"}'])
  end)

  it('do not end in what is reserved', function()
    local metrics = new()
    metrics:table(tables.new('x', { { name = 'count' }, { name = 'a_total' }, { name = '%' } }),
      { { count = 1, a_total = 2, ['%'] = 3 } })
    assert.same({ 'profscript_my_script_x_count_value 1', 'profscript_my_script_x_a_total_value 2',
      'profscript_my_script_x_value 3' }, lines(metrics))
  end)

  it('have histograms whose buckets are exact', function()
    local metrics, h = new(), hist.new()
    local spec = tables.new('sizes', { { name = 'count', metric = 'counter', of_histogram = true },
      { name = 'size_bytes', metric = 'histogram' } })
    for _, value in ipairs { -1, 0, 1, 2, 3, 4, 1023, 1024, 2 ^ 40 } do h:add(value) end
    for _ = 1, 2 do
      metrics:table(spec, { { count = 9, size_bytes = h } })
      metrics:next_report()
    end
    local found, rest = {}, {}
    for _, line in ipairs(lines(metrics)) do
      local le, n = line:match '^profscript_my_script_sizes_size_bytes_bucket{le="(.-)"} (%d+)$'
      if le then found[le] = tonumber(n) else rest[#rest + 1] = line end
    end
    assert.same({ 4, 6, 10, 12, 14, 16, 16, 18 }, { found['0'], found['1'], found['3'], found['7'], found['1023'],
      found['2047'], found['4294967295'], found['+Inf'] })
    assert.same({ ('profscript_my_script_sizes_size_bytes_sum %d'):format(2 * (2057 + 2 ^ 40)),
      'profscript_my_script_sizes_size_bytes_count 18' }, rest)
  end)

  it('have histograms of single values', function()
    local metrics = new()
    local spec = { name = 'io',
      columns = { { name = 'ms', metric = 'histogram' }, { name = 'n', metric = 'histogram' } } }
    -- 255 ns, 256 ns, 1.5 ms; 1 is the bound of its bucket, 1.5 is above it.
    for _, row in ipairs { { ms = 0.000255, n = 1 }, { ms = 0.000256, n = 1.5 }, { ms = 1.5, n = -2 }, { n = 0 / 0 },
      { n = math.huge }, { n = 'x' }, { ms = 1e9, n = 2 ^ 32 } } do metrics:table(spec, { row }) end
    local found = {}
    for _, line in ipairs(lines(metrics)) do
      local name, n = line:match '^profscript_my_script_io_(.*) ([^ ]+)$'
      found[name] = tonumber(n)
    end
    assert.same({ 1, 2, 2, 3, 3, 4 }, { found['seconds_bucket{le="2.55e-07"}'], found['seconds_bucket{le="5.11e-07"}'],
      found['seconds_bucket{le="0.001048575"}'], found['seconds_bucket{le="0.002097151"}'],
      found['seconds_bucket{le="17.179869183"}'], found['seconds_bucket{le="+Inf"}'] })
    assert.near(1e6 + 0.0015, found['seconds_sum'], 1e-5)
    assert.same({ 1, 2, 3, 3, 4, 4 }, { found['n_bucket{le="0"}'], found['n_bucket{le="1"}'], found['n_bucket{le="3"}'],
      found['n_bucket{le="4294967295"}'], found['n_bucket{le="+Inf"}'], found['n_count'] })
  end)

  it('add up gauges of several stacks', function()
    local metrics = new()
    local spec = tables.new('leaks', { { name = 'bytes', adds_up = true }, { name = 'age' }, { name = 'event' },
      { name = 'stack' } })
    for _ = 1, 2 do
      metrics:table(spec, { { bytes = 10, age = 1, event = 'a', stack = { 'f' } },
        { bytes = 5, age = 2, event = 'a', stack = { 'g' } }, { bytes = 1, age = 3, event = 'b', stack = {} } })
      metrics:next_report()
    end
    assert.same({ 'profscript_my_script_leaks_bytes{event="a"} 15',
      'profscript_my_script_leaks_bytes{event="b"} 1', 'profscript_my_script_leaks_age{event="a"} 2',
      'profscript_my_script_leaks_age{event="b"} 3' }, lines(metrics))
  end)

  it('are bounded, and forget what is old when there is no room', function()
    local metrics = new(10)
    local spec = tables.new('t', { { name = 'pid' }, { name = 'n', metric = 'counter' } })
    local function report(from, to)
      local rows = {}
      for pid = from, to do rows[#rows + 1] = { pid = pid, n = 1 } end
      metrics:table(spec, rows)
      metrics:next_report()
    end
    report(1, 12)
    assert.same({ 10, 2 }, { #lines(metrics), metrics.dropped })
    report(5, 12) -- 11 and 12 are dropped again
    assert.equal(4, metrics.dropped)
    clock = clock + 299
    report(5, 5)
    clock = clock + 2
    report(11, 14)
    assert.same({ 'profscript_my_script_t_n_total{pid="5"} 3', 'profscript_my_script_t_n_total{pid="11"} 1',
      'profscript_my_script_t_n_total{pid="12"} 1', 'profscript_my_script_t_n_total{pid="13"} 1',
      'profscript_my_script_t_n_total{pid="14"} 1' }, lines(metrics))
    assert.equal(4, metrics.dropped)
  end)
end)
