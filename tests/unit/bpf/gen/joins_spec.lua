-- SPDX-License-Identifier: GPL-2.0-only
-- Joins in programs, on synthetic events: what a finish finds, and what is counted.
local asm = require 'bpf.gen.asm'
local ffi = require 'ffi'
local joins = require 'bpf.gen.joins'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'

ffi.cdef 'struct join_record { int64_t cpu, side, key, value, ns, kept; };'
local record_type = ffi.typeof 'struct join_record'
local on = run_bpf.on(record_type, 1)
local fields = { key = on.field 'key', value = on.field 'value' }
local FRAME, CONTEXT = asm.FRAME, asm.CONTEXT

--- Returns functions that start and finish; the latter one returns the time and the kept value.
local function programs(join)
  local key = joins.compile('key', fields)
  local starting, finishing = joins.program(1), joins.program(1)
  starting.parts[1] = { found = {}, start = join, key = key, value = joins.compile('value', fields) }
  local finish = { found = {}, finish = join, key = key, ns = joins.field('ns', false),
    kept = joins.field('kept', false) }
  finishing.parts = { finish, { found = { finish }, body = function(a)
    for _, one in ipairs { { finish.ns.place, 'ns' }, { finish.kept.place, 'kept' } } do
      a:load(8, 1, FRAME, one[1])
      a:store(8, CONTEXT, ffi.offsetof(record_type, one[2]), 1)
    end
  end } }
  local first, second = on.load(starting:body()), on.load(finishing:body())
  local function start(k, value) on.run(first, record_type { key = k, value = value }) end
  return start, function(k)
    local record = record_type { key = k, ns = -1, kept = -1 }
    on.run(second, record)
    return tonumber(record.ns), tonumber(record.kept)
  end
end

describe('joins in programs', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end

  for _, direct in ipairs { 1000, false } do
    it(('keep the last start of a key, %s'):format(direct and 'in places' or 'by hash'), function()
      local join = joins.new { expires = 2 ^ 53, direct = direct or nil, has_value = true, nr_cpus = 1 }
      local start, finish = programs(join)
      start(1, 7)
      start(2, 8)
      start(2, 9)
      assert.equal(2, join:waiting())
      local ns, kept = finish(2)
      assert.is_true(ns >= 0)
      assert.equal(9, kept)
      assert.equal(-1, (finish(2)))
      assert.equal(7, select(2, finish(1)))
      assert.same({ unstarted = 1, replaced = 1, expired = 0, evicted = 0, found = 1 }, join:counts())
      assert.same({ unstarted = 0, replaced = 0, expired = 0, evicted = 0, found = 0 }, join:counts())
      assert.equal(0, join:waiting())
    end)
  end

  it('find nothing after a start has expired', function()
    local join = joins.new { expires = 0, has_value = true, nr_cpus = 1 }
    local start, finish = programs(join)
    start(1, 7)
    assert.equal(-1, (finish(1)))
    assert.equal(1, join:counts().expired)
  end)

  it('find the starts of many keys that share places', function()
    local join = joins.new { expires = 2 ^ 53, has_value = true, nr_cpus = 1 }
    local start, finish = programs(join)
    for key = 1, 2000 do start(key, key) end
    for key = 2000, 1, -1 do assert.equal(key, select(2, finish(key))) end
    assert.equal(0, join:waiting())
  end)
end)
