-- SPDX-License-Identifier: GPL-2.0-only
-- Starts that programs keep, compared with a table: keys that have a place each, and keys that share places.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local starts = require 'bpf.gen.starts'

ffi.cdef 'struct starts_record { uint64_t cpu, side, takes, key, time, value, replaced, result; };'
local record_type = ffi.typeof 'struct starts_record'
local function at(name) return ffi.offsetof(record_type, name) end

local TAG, STORED, FULL, LATE = 5, 1, 2, 3
local CONTEXT, FRAME = asm.CONTEXT, asm.FRAME
local on = run_bpf.on(record_type, 1)

--- Loads a program that stores a start, or takes one.
local function load(made)
  return on.load(function(a)
    local value = a:take(8)
    a:load(8, 7, CONTEXT, at 'key')
    a:load(8, 8, CONTEXT, at 'time')
    a:load(8, 1, CONTEXT, at 'takes')
    a:jump('==', 1, 1, 'take')
    a:load(8, 1, CONTEXT, at 'value')
    a:store(8, FRAME, value, 1)
    made:store(a, TAG, value, { full = 'full', late = 'late' }, function()
      a:store_value(8, CONTEXT, at 'replaced', 1)
    end)
    for result, label in ipairs { 'stored', 'full', 'late' } do
      a:label(label)
      a:store_value(8, CONTEXT, at 'result', result)
      a:go 'done'
    end
    a:label 'take'
    made:find(a, 'done')
    made:take(a, value)
    a:store(8, CONTEXT, at 'result', 1)
    a:load(8, 1, FRAME, value)
    a:store(8, CONTEXT, at 'value', 1)
  end)
end

--- Stores and takes starts of these keys, in the program and in a table.
local function compare(made, keys)
  local loaded, waiting, record = load(made), {}, record_type()
  for i = 1, 4000 do
    local key, takes = keys[math.random(#keys)], math.random(2) == 1
    record.takes, record.key, record.time, record.value = takes and 1 or 0, key, i + math.random(0, 3), i
    record.replaced, record.result = 0, 0
    local before, time = waiting[key], tonumber(record.time)
    on.run(loaded, record)
    if takes then
      local word = before and before.time * 2 ^ starts.TAG_BITS + TAG or 0
      assert.same({ word, before and before.value or i }, { tonumber(record.result), tonumber(record.value) })
      waiting[key] = nil
    else
      local is_late = before and before.time > time
      assert.same({ is_late and LATE or STORED, before and 1 or 0 },
        { tonumber(record.result), tonumber(record.replaced) })
      if not is_late then waiting[key] = { time = time, value = i } end
    end
  end
  local want, got = {}, {}
  for _, one in pairs(waiting) do want[#want + 1] = one.time end
  made:each(function(tag, time)
    assert.equal(TAG, tag)
    got[#got + 1] = time
  end)
  table.sort(want)
  table.sort(got)
  assert.same(want, got)
end

describe('starts', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end
  math.randomseed(11)

  it('of keys that have a place each', function()
    local made = starts.new(16)
    local keys = {}
    for key = 0, 15 do keys[#keys + 1] = key end
    compare(made, keys)
    local record = record_type { key = 16, time = 1 }
    on.run(load(made), record)
    assert.equal(FULL, tonumber(record.result))
    assert.is_nil(made:address(16))
  end)

  it('of any keys, of which some share a place', function()
    local made, keys, by_place = starts.new(), {}, {}
    for _ = 1, 4000 do
      local key = math.random(2 ^ 40)
      local place = tostring(made:address(key))
      by_place[place] = by_place[place] or {}
      table.insert(by_place[place], key)
    end
    for _, list in pairs(by_place) do
      for _, key in ipairs(list[2] and list or {}) do keys[#keys + 1] = key end
    end
    table.sort(keys)
    assert.is_true(#keys > 10)
    compare(made, { unpack(keys, 1, 40) })
  end)
end)
