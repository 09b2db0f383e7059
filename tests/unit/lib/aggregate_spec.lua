-- SPDX-License-Identifier: GPL-2.0-only
local ffi = require 'ffi'
local aggregate = require 'lib.aggregate'
local counter = require 'lib.counter'

--- An output that records: the rows of tables, the text of the rest.
local function recorder(format)
  local out = { format = format or 'json', rows = {}, text = {}, warnings = {} }
  function out:table(spec, rows, _, shown)
    self.name = spec.name
    if self.format == 'text' and #rows > 0 then
      self:stamp()
      self:write(shown())
    end
    for _, row in ipairs(rows) do self.rows[#self.rows + 1] = row end
  end
  function out:write(text) self.text[#self.text + 1] = text end
  function out:stamp() self:write 'STAMP\n' end
  function out:takes_rows() return self.format ~= 'text' end
  function out:warn(text) self.warnings[#self.warnings + 1] = text end
  return out
end

local function rows_of(object, settings)
  local out = recorder()
  object:print(out, settings)
  return out.rows, out
end

describe('sums that a number cannot hold', function()
  it('are exact', function()
    for _, values in ipairs {
      { 2 ^ 53, 1, 1, 1 }, { 0xffff888000000001ULL, 2, 3 }, { -2 ^ 53, -1, -9007199254740993LL },
      { 2 ^ 53, 1, -2 ^ 53, 1 },
    } do
      local sum, mean, want = aggregate.new('sum', { 'pid' }), aggregate.new('avg', {}), 0ULL
      for _, value in ipairs(values) do
        want = want + ffi.cast('uint64_t', ffi.cast('int64_t', value))
        sum:add(value, 1)
        mean:add(value)
      end
      local rows, out = rows_of(sum)
      assert.equal(want, ffi.cast('uint64_t', ffi.cast('int64_t', rows[1].sum)))
      assert.same({}, out.warnings)
      local row = rows_of(mean)[1]
      assert.is_true(rows[1].sum == row.total)
      assert.equal(tonumber(row.total) / #values, row.avg)
    end
  end)

  it('are marked, once, if they have more than 64 bits', function()
    local large = aggregate.new('sum', { 'pid' })
    for pid = 1, 2 do
      large:add(2 ^ 63, pid)
      large:add(2 ^ 63, pid)
    end
    assert.same({ 'sum: sums of more than 64 bits are rounded' }, select(2, rows_of(large)).warnings)
    assert.same({}, select(2, rows_of(large)).warnings)
    local mean = aggregate.new('avg', {})
    mean:add(-2 ^ 64)
    assert.same({ 'avg: sums of more than 64 bits are rounded' }, select(2, rows_of(mean)).warnings)
  end)
end)

describe('counter', function()
  it('adds under its keys, largest first, ties by key', function()
    local count = counter.new { 'pid', 'comm' }
    count:add(1, 20, 'b')
    count:add(1, 20, 'a')
    count:add(1, 3, 'z')
    count:add(5, 7, 'x')
    count:add(2, 7, 'x')
    assert.same({
      { pid = 7, comm = 'x', count = 7 },
      { pid = 3, comm = 'z', count = 1 },
      { pid = 20, comm = 'a', count = 1 },
      { pid = 20, comm = 'b', count = 1 },
    }, (rows_of(count)))
  end)

  it('prints the first rows of many', function()
    local count = counter.new { 'k' }
    for i = 1, 1000 do count:add(i % 100, i) end
    local rows = rows_of(count, { limit = 3 })
    assert.same({ { k = 99, count = 99 }, { k = 199, count = 99 }, { k = 299, count = 99 } }, rows)
  end)

  it('starts again', function()
    local count = counter.new { 'k' }
    for i = 1, 10 do count:add(1, i) end
    count:clear()
    assert.same({}, (rows_of(count)))
    count:add(1, 'other key')
    assert.same({ { k = 'other key', count = 1 } }, (rows_of(count)))
  end)

  it('shows the keys that had no room', function()
    local count = counter.new({ 'k' }, { max_keys = 2 })
    for i = 1, 5 do count:add(1, i) end
    assert.same({ { k = 1, count = 1 }, { k = 2, count = 1 }, { k = '(other)', count = 3 } }, (rows_of(count)))
    assert.equal('(other)', rows_of(count, { limit = 1 })[2].k)
    count:clear()
    for i = 1, 3 do count:add(1, i) end
    assert.equal(1, rows_of(count)[3].count)
  end)

  it('orders keys of all types', function()
    local count = counter.new { 'k' }
    local keys = { 'a', 0xffffffffffffffffULL, -1, 0 / 0, 2, 0.5 }
    for i = 1, 6 do count:add(1, keys[i]) end
    local order = {}
    for i, row in ipairs((rows_of(count))) do order[i] = tostring(row.k) end
    assert.same({ '-1', '0.5', '2', '18446744073709551615ULL', 'a', 'nan' }, order)
  end)

  it('survives sums that are not numbers', function()
    local count = counter.new { 'k' }
    for i = 1, 200 do count:add(i % 2 == 0 and 0 / 0 or i, i) end
    assert.equal(199, rows_of(count, { limit = 5 })[1].count)
  end)
end)

describe('aggregate', function()
  it('counts without a value, with and without keys', function()
    local count, all = aggregate.new('count', { 'k' }), aggregate.new('count', {})
    for i = 1, 10 do
      count:add(i % 2)
      all.call()
    end
    assert.same({ { k = 0, count = 5 }, { k = 1, count = 5 } }, (rows_of(count)))
    assert.same({ { count = 10 } }, (rows_of(all)))
  end)

  it('sums 64-bit fields', function()
    local sum = aggregate.new('sum', { 'k' }, { name = 'bytes' })
    sum:add(1LL, 'a')
    sum:add(2ULL, 'a')
    sum:add(0.5, 'a')
    local rows, out = rows_of(sum)
    assert.same({ { k = 'a', sum = 3.5 } }, rows)
    assert.equal('bytes', out.name)
  end)

  it('gives quantiles, and reports the values that it could not count', function()
    local q = aggregate.new('quantiles', { 'k' })
    for i = 1, 100 do q:add(i, 'a') end
    q:add(-1, 'b')
    local rows, out = rows_of(q)
    assert.equal(100, rows[1].value:stats().count) -- the histogram, which is not printed
    rows[1].value = nil
    assert.same({ k = 'a', count = 100, total = 5050, min = 1, p50 = 50, p95 = 95, p99 = 99, max = 100,
      avg = 50.5, variance = 833.25, stddev = math.sqrt(833.25) }, rows[1])
    assert.same({ 'quantiles: counted 1 negative values as 0' }, out.warnings)
  end)

  it('draws histograms', function()
    local hist = aggregate.new('hist', { 'comm', 'nr' })
    for _, v in ipairs { -2, 0, 1, 1000, 1500, 1600, 3000 } do hist:add(v, 'a\27', 3) end
    local out = recorder 'text'
    hist:print(out)
    local third = '|' .. ('@'):rep(26) .. (' '):rep(26) .. '|\n'
    assert.equal('STAMP\n' .. 'comm=a\\x1b nr=3:\n'
      .. '(..., 0)                1 ' .. third
      .. '[0]                     1 ' .. third
      .. '[1]                     1 ' .. third
      .. '...\n'
      .. '[512, 1K)               1 ' .. third
      .. '[1K, 2K)                2 |' .. ('@'):rep(52) .. '|\n'
      .. '[2K, 4K)                1 ' .. third, table.concat(out.text))
  end)

  it('draws linear histograms, with their ends', function()
    local hist = aggregate.new('lhist', { 'k' }, { low = 0, high = 25, step = 10 })
    for _, v in ipairs { -5, 0, 9.5, 24, 25, 900LL } do hist:add(v, 'a') end
    hist:add(3, 'b')
    assert.same({
      { k = 'a', high = 0, count = 1 }, { k = 'a', low = 0, high = 10, count = 2 },
      { k = 'a', low = 20, high = 25, count = 1 }, { k = 'a', low = 25, count = 2 },
      { k = 'b', low = 0, high = 10, count = 1 },
    }, (rows_of(hist)))
    local out = recorder 'text'
    hist:print(out, { limit = 1 })
    local text = table.concat(out.text)
    assert.truthy(text:find '^STAMP\nk=a:\n%(%.%.%., 0%)  +1 |')
    assert.truthy(text:find '\n%[0, 10%)  +2 |[@ ]+|\n%.%.%.\n%[20, 25%)  +1 |')
    assert.truthy(text:find '\n%[25, %.%.%.%)  +2 |')
    assert.falsy(text:find 'k=b')
    hist:clear()
    assert.same({}, (rows_of(hist)))
    assert.has_error(function() aggregate.new('lhist', {}, { low = 0, high = 0, step = 1 }) end,
      'lhist takes three numbers: where its buckets begin, where they end, and their width')
  end)

  it('averages and keeps extremes, also of negative numbers', function()
    local avg, least, most = aggregate.new('avg', { 'k' }), aggregate.new('min', {}), aggregate.new('max', { 'k' })
    for _, v in ipairs { -2, -1LL, 9 } do
      avg:add(v, 'a')
      least:add(v)
      most:add(-v, 'a')
    end
    assert.same({ { k = 'a', count = 3, total = 6, avg = 2 } }, (rows_of(avg)))
    assert.same({ { min = -2 } }, (rows_of(least)))
    assert.same({ { k = 'a', max = 2 } }, (rows_of(most)))
    for _, one in ipairs { avg, least, most } do
      one:clear()
      assert.same({}, (rows_of(one)))
    end
    most:add(-7, 'a')
    assert.same({ { k = 'a', max = -7 } }, (rows_of(most)))
  end)

  it('shows values with their unit to people', function()
    local hist = aggregate.new('hist', {}, { unit = 'bytes' })
    hist:add(70000)
    local out = recorder 'text'
    hist:print(out)
    assert.truthy(table.concat(out.text):find('[64 KiB, 128 KiB)           1 |', 1, true))
    assert.same({ low = 65536, high = 131072, count = 1 }, { low = 65536, high = rows_of(hist)[1].high, count = 1 })
  end)

  it('sorts by a key or another column', function()
    local times = aggregate.new('quantiles', { 'k', 'n' })
    for i, k in ipairs { 'b', 'a', 'c' } do
      for _ = 1, i do times:add(10 - i, k, -i) end
    end
    local function keys(sort, limit)
      local list = {}
      for i, row in ipairs((rows_of(times, { sort = sort, limit = limit }))) do list[i] = row.k end
      return table.concat(list)
    end
    assert.equal('cab', keys())
    assert.equal('abc', keys 'key')
    assert.equal('ab', keys('key', 2))
    assert.equal('cab', keys 'n')
    assert.equal('bac', keys 'max')
    assert.equal('cab', keys 'total')
    assert.has_error(function() keys 'p90' end, "quantiles:print: there is no column 'p90' to sort by")
  end)

  it('prints histograms as rows in JSON and CSV', function()
    local hist = aggregate.new('hist', { 'k' })
    for _, v in ipairs { -2, 0, 1, 2, 3 } do hist:add(v, 'a') end
    local rows = rows_of(hist)
    assert.equal(5, rows[1].value:stats().count) -- the histogram, which is not printed
    rows[1].value = nil
    assert.same({
      { k = 'a', high = 0, count = 1 },
      { k = 'a', low = 0, high = 1, count = 1 },
      { k = 'a', low = 1, high = 2, count = 1 },
      { k = 'a', low = 2, high = 4, count = 2 },
    }, rows)
    hist:clear()
    assert.same({}, (rows_of(hist)))
  end)

  it('makes no garbage per event once compiled', function()
    local addresses = ffi.new('uint64_t[16]')
    for i = 0, 15 do addresses[i] = 0xffff888000000000ULL + i end
    local count, hist = aggregate.new('count', { 'addr', 'comm' }), aggregate.new('hist', { 'addr' })
    local names = { 'sh', 'kworker/0:1', 'systemd-journal' }
    local function events(n)
      for i = 1, n do
        count.call(addresses[i % 16], names[i % 3 + 1])
        hist.call(addresses[i % 16], i)
      end
    end
    events(10000)
    collectgarbage()
    collectgarbage 'stop'
    local before = collectgarbage 'count'
    events(100000)
    local grown = collectgarbage 'count' - before
    collectgarbage 'restart'
    assert.is_true(grown < 100, ('%d KiB'):format(grown))
  end)

  it('makes stacks of the same functions one key', function()
    -- 1 and 2 differ by where in `hot` they are, 3 by its caller.
    local frames = { { 'hot', 'main' }, { 'hot', 'main' }, { 'hot', 'other', 'main' } }
    local session = {
      stack_lines = function(id) return { id .. ' ' .. table.concat(frames[id], ' ') } end,
      frame_names = function(id, names)
        for i, name in ipairs(frames[id]) do names[i] = name end
        return #frames[id]
      end,
    }
    local function filled(kind)
      local sums = aggregate.new(kind, { 'stack', 'comm' }, { stacks = { stack = true }, session = session })
      local function add(n, value, stack, comm)
        for _ = 1, n do
          if kind == 'count' then sums:add(stack, comm) else sums:add(value, stack, comm) end
        end
      end
      add(3, 10, 1, 'a')
      add(4, 1000, 2, 'a')
      add(5, 1, 3, 'a')
      add(1, 1, 1, 'b')
      return (rows_of(sums))
    end
    local one, two, three = { '1 hot main' }, { '2 hot main' }, { '3 hot other main' }
    assert.same({ { stack = two, comm = 'a', count = 7 }, { stack = three, comm = 'a', count = 5 },
      { stack = one, comm = 'b', count = 1 } }, filled 'count')
    assert.same({ 4030, 5, 1 }, { filled('sum')[1].sum, filled('sum')[2].sum, filled('sum')[3].sum })
    local first = filled('quantiles')[1]
    assert.same({ two, 7, 10, 1000 }, { first.stack, tonumber(first.count), tonumber(first.min), tonumber(first.max) })
    local counts = {}
    for _, row in ipairs(filled 'hist') do
      if tonumber(row.count) > 0 then counts[#counts + 1] = tonumber(row.count) end
    end
    assert.same({ 3, 4, 5, 1 }, counts)
  end)

  it('refuses a forgotten key', function()
    local bytes = aggregate.new('sum', { 'pid', 'comm' })
    assert.error_matches(function() bytes:add(1, 2) end,
      "sum takes %(value, pid, comm%): the key 'comm' is missing or nil")
    assert.error_matches(function() aggregate.new('count', { 'pid' }):add() end, "count takes %(pid%): the key 'pid'")
    bytes:add(1, nil, 'a')
    bytes.call(1, 2, nil) -- of one-liners, where nil may be meant
    assert.equal(2, #rows_of(bytes))
    aggregate.new('count', {}):add()
  end)

  it('can be read, largest first, all other keys last', function()
    local bytes, read = counter.new({ 'pid', 'comm' }, { max_keys = 2 }), {}
    bytes:add(1, 7, 'x')
    bytes:add(3, 8, 'y')
    bytes:add(9, 9, 'z')
    bytes:each(function(value, pid, comm) read[#read + 1] = { value, pid, comm } end)
    assert.same({ { 3, 8, 'y' }, { 1, 7, 'x' }, { 9, '(other)', '(other)' } }, read)
    local times = aggregate.new('quantiles', {})
    times:add(5)
    times:each(function(hist, ...) read = { hist:quantile(0.5), select('#', ...) } end)
    assert.same({ 5, 0 }, read)
  end)

  it('limits the number of keys', function()
    assert.error_matches(function() aggregate.new('count', { 'a', 'b', 'c', 'd', 'e' }) end, 'at most 4 keys')
  end)
end)

describe('pictures of histograms', function()
  --- Prints an aggregation to a terminal, and returns the lines of its picture.
  local function drawn(object, columns)
    local lines
    local out = { tty = true, takes_rows = function() end }
    function out.table(_, _, _, _, _, draw) lines = draw(columns) end
    object:print(out)
    return lines
  end

  it('have the earlier ones beside them', function()
    local getenv = os.getenv
    finally(function() rawset(os, 'getenv', getenv) end)
    rawset(os, 'getenv', function(name) return name == 'NO_COLOR' and '1' or getenv(name) end)
    local times = aggregate.new('hist', { 'comm' })
    for _ = 1, 100 do times:add(5, 'a') end
    times:add(-1, 'a')
    times:clear()
    drawn(times, 80)
    times:add(9, 'a')
    times:add(5, 'a')
    drawn(times, 80)
    times:clear()
    for _ = 1, 50 do times:add(4, 'a') end
    local bar = ('@'):rep(25)
    assert.same({ 'comm=a:', '[4, 8)' .. (' '):rep(17) .. '50 |' .. bar .. '|  :@',
      '[8, 16)' .. (' '):rep(17) .. '0 |' .. (' '):rep(25) .. '|  : ', '' }, drawn(times, 80))
  end)

  it('fit narrow terminals as well as they can', function()
    local times = aggregate.new('hist', {})
    times:add(0)
    local lines = drawn(times, 20)
    assert.matches('^%[0%] +1 |@+| ', lines[2])
  end)
end)
