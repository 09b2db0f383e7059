-- SPDX-License-Identifier: GPL-2.0-only
-- Sums that programs write, compared with histograms that get the same values: cells, rows in hashes, and rows in
-- tables of a CPU. The programs are run on synthetic times.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local hist = require 'bindings.base.hist'
local kernel_sums = require 'bpf.gen.sums'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'

local C = ffi.C

ffi.cdef 'struct sums_record { uint64_t cpu, side, number, kind, failed, ns; };'
local record_type = ffi.typeof 'struct sums_record'
local function at(name) return ffi.offsetof(record_type, name) end

local CPUS, KINDS, THRESHOLD = 2, 4, 1000
local on = run_bpf.on(record_type, CPUS)
local run = on.run

--- Loads a program that adds a record's time.
---@param add fun(a: Asm, places: table, key: integer, failed: integer) the time is in r3, and the kind in r4
local function load(add)
  return on.load(function(a, _, places)
    local key, failed = a:take(24), a:take(8)
    for name, place in pairs { number = key, kind = key + 8, failed = failed } do
      a:load(8, 0, asm.CONTEXT, at(name))
      a:store(8, asm.FRAME, place, 0)
    end
    a:load(8, 4, asm.CONTEXT, at 'kind')
    a:jump('>=', 4, KINDS, 'done')
    a:load(8, 3, asm.CONTEXT, at 'ns')
    add(a, places, key, failed)
  end)
end

local function random_ns(random)
  local bits = random(0, 40)
  return random(5) == 1 and random(0, 130) or math.floor(2 ^ bits * (1 + random()))
end

local function same(want, got, i)
  local one, other = want:get(i), got:get(i)
  if not one then return assert.is_nil(other) end
  assert.same(one:stats(), other:stats())
  for _, q in ipairs { 0.01, 0.5, 0.95, 1 } do assert.equal(one:quantile(q), other:quantile(q)) end
end

describe('sums in the kernel', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end
  math.randomseed(5)
  local random = math.random

  it('in cells are those of a histogram', function()
    for _, is_alone in ipairs { false, true } do
      local cells = kernel_sums.cells(KINDS, CPUS, { buckets = true, threshold = THRESHOLD })
      local loaded = load(function(a, places, _, failed) cells:add(a, places, failed, is_alone) end)
      local want, got, failures, failed = hist.set(2 * KINDS, THRESHOLD), hist.set(2 * KINDS, THRESHOLD), 0, 0
      for _ = 1, 2000 do
        local record = record_type { cpu = random(0, CPUS - 1), side = random(2), kind = random(0, KINDS - 1),
          failed = random(0, 1), ns = random_ns(random) }
        run(loaded, record)
        want:add(tonumber((record.side - 1) * KINDS + record.kind), tonumber(record.ns))
        failures = failures + tonumber(record.failed)
      end
      for side = 1, 2 do
        cells:take(side, function(cell, _, sums, counts)
          assert.equal(0, C.hist_set_add_sums(got, (side - 1) * KINDS + cell, sums, counts))
          failed = failed + tonumber(sums.failed)
        end)
        cells:take(side, function() error 'a cell is not empty' end)
      end
      for i = 0, 2 * KINDS - 1 do same(want, got, i) end
      assert.equal(failures, failed)
    end
  end)

  --- Adds times to rows of many numbers, some of which have no room, and compares them with a histogram for each.
  local function check_rows(settings, numbers, most)
    local rows = kernel_sums.rows(2, { nr_cpus = CPUS, sides = 2, most = most, kinds = KINDS, threshold = THRESHOLD,
      buckets = true, named = settings.named, has_tables = settings.has_tables })
    local loaded = load(function(a, places, key, failed)
      rows:add(a, places, key, failed, settings.named and function(place)
        a:value(1, 0x656d616e) -- "name"
        a:store(8, asm.FRAME, place, 1)
        a:store_value(8, asm.FRAME, place + 8, 0)
      end)
    end)
    local want, got, all, found = hist.set(numbers * KINDS, THRESHOLD), hist.set(numbers * KINDS, THRESHOLD), 0, 0
    local others = 0
    for round = 1, 3 do
      local side = round % 2 + 1
      for _ = 1, 3000 do
        local record = record_type { cpu = random(0, CPUS - 1), side = side, number = random(1, numbers),
          kind = random(0, KINDS - 1), ns = random_ns(random) }
        run(loaded, record)
        all = all + 1
        if most > numbers * KINDS then
          want:add(tonumber((record.number - 1) * KINDS + record.kind), tonumber(record.ns))
        end
      end
      rows:take(side, function(key, kind, sums, _, name)
        found = found + tonumber(sums.count)
        if not key then
          others = others + tonumber(sums.count)
          return
        end
        assert.equal(kind, tonumber(key[1]))
        if name then assert.equal('name', name) end
        assert.equal(0, C.hist_set_add_sums(got, tonumber((key[0] - 1) * KINDS + key[1]), sums, nil))
      end, function(key, kind, bucket, count)
        assert.equal(0, C.hist_set_add_bucket(got, tonumber(key[0] - 1) * KINDS + kind, bucket, count))
      end)
      rows:take(side, function() error 'a row is not empty' end, function() error 'a bucket is not empty' end)
    end
    assert.equal(all, found)
    if most <= numbers * KINDS then return assert.is_true(others > 0) end
    assert.equal(0, others)
    for i = 0, numbers * KINDS - 1 do same(want, got, i) end
  end

  it('in rows are those of a histogram for each key', function()
    check_rows({}, 20, 1000)
    check_rows({ named = true }, 20, 1000)
  end)
  it('in rows with tables, too', function()
    check_rows({ has_tables = true, named = true }, 20, 1000)
    check_rows({ has_tables = true, named = true }, 700, 4000) -- more rows and buckets than the tables have places
  end)
  it('of rows without room are together', function()
    check_rows({}, 20, 30)
    check_rows({ has_tables = true }, 20, 30)
  end)
end)
