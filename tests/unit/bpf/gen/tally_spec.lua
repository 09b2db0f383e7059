-- SPDX-License-Identifier: GPL-2.0-only
-- Programs that count, compared with what Lua counts of the same synthetic events.
local ffi = require 'ffi'
local hist = require 'bindings.base.hist'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local tally = require 'bpf.gen.tally'

ffi.cdef 'struct tally_record { int64_t cpu, side, id, value; };'
local record_type = ffi.typeof 'struct tally_record'
local CPUS, IDS, SIDE = 2, 40, 2
local on = run_bpf.on(record_type, CPUS)
local fields = { id = on.field 'id', value = on.field 'value' }

local function random_value()
  local n = math.floor(2 ^ math.random(0, 50))
  return math.random(4) == 1 and -n or n
end

--- Counts random events, and calls each(id, value) for those of SIDE.
local function count(one, max_keys, each)
  one.fields, one.event = fields, {}
  local counted = tally.new({ one }, { nr_cpus = CPUS, sides = 2, max_keys = max_keys, env = {} })
  local loaded = on.load(counted:body(1))
  for _ = 1, 3000 do
    local id, value, side = math.random(IDS), random_value(), math.random(2)
    on.run(loaded, record_type { cpu = math.random(0, CPUS - 1), side = side, id = id, value = value })
    if side == SIDE then each(id, value) end
  end
  return counted
end

local function assert_same(want, got, i)
  assert.same(want:get(i):stats(), got:get(i):stats())
  for _, q in ipairs { 0.1, 0.5, 0.99 } do assert.equal(want:get(i):quantile(q), got:get(i):quantile(q)) end
end

describe('tally', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end
  math.randomseed(7)

  it('counts, adds up and fills histograms by key', function()
    local n, sums, want, got = {}, {}, hist.set(IDS + 1), hist.set(IDS + 1)
    local counted = count({ key = { 'id' }, sums = { 'value' }, hist = 'value' }, 1000, function(id, value)
      n[id], sums[id] = (n[id] or 0) + 1, (sums[id] or 0) + value
      want:add(id, value)
    end)
    local found, added = {}, {}
    local function add(_, _, row, key)
      local id = tonumber(ffi.cast('int64_t *', key)[0])
      found[id] = (found[id] or 0) + counted:count(row)
      local high, low = counted:sum(row, 1)
      added[id] = (added[id] or 0) + high + low
      counted:add_stats(row, got, id)
    end
    counted:take_rows(SIDE, add)
    counted:take_buckets(SIDE, function(_, _, bucket, times, key)
      counted:add_buckets({ [bucket] = times }, got, tonumber(ffi.cast('int64_t *', key)[0]))
    end)
    counted:read_cells(SIDE, function(_, _, row) assert.equal(0, counted:count(row)) end, add)
    assert.same(n, found)
    assert.same(sums, added)
    for id = 1, IDS do assert_same(want, got, id) end
    counted:read_cells(SIDE, function() end, function() error 'a slot is not empty' end)
  end)

  it('has one row for keys without room', function()
    local all, found = 0, 0
    local counted = count({ key = { 'id', 'value' }, sums = {} }, 10, function() all = all + 1 end)
    local function add(_, _, row) found = found + counted:count(row) end
    counted:take_rows(SIDE, add)
    local rows = found
    counted:read_cells(SIDE, add, add)
    assert.equal(all, found)
    assert.is_true(rows < found)
  end)

  it('has histograms of negative numbers, and ignores what a filter rejects', function()
    local want, got, rejected, ignored = hist.set(2), hist.set(2), 0, 0
    local negative = hist.set(2)
    local counted = count({ key = {}, sums = {}, hist = 'value', signed = true, filter = 'id > 3' }, 1,
      function(id, value)
        if id <= 3 then rejected = rejected + 1 else want:add(value < 0 and 1 or 0, math.abs(value)) end
      end)
    counted:read_cells(SIDE, function(index, _, row, without)
      ignored = ignored + without
      counted:add_hist(row, index, got, negative, 0)
    end, error)
    assert.equal(rejected, ignored)
    assert_same(want, got, 0)
    assert.same(want:get(1):stats(), negative:get(0):stats())
  end)

  it('has histograms of unsigned numbers', function()
    local want, got = hist.new(), hist.set(1)
    local counted = count({ key = {}, sums = {}, hist = '(unsigned long)value' }, 1,
      function(_, value) want:add(ffi.cast('uint64_t', ffi.cast('int64_t', value))) end)
    counted:read_cells(SIDE, function(index, _, row) counted:add_hist(row, index, got, nil, 0) end, error)
    assert.same(want:log2(), got:get(0):log2())
    assert.equal(63, want:log2()[#want:log2()].exponent)
    for _, q in ipairs { 0, 0.5, 0.9, 0.99, 1 } do assert.equal(want:quantile(q), got:get(0):quantile(q)) end
  end)
end)
