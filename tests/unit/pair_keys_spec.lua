-- SPDX-License-Identifier: GPL-2.0-only
-- What the pair matcher is told of wakeups that no switch will follow.
local ffi = require 'ffi'
local pair_keys = require 'bindings.pair_keys'

local C = ffi.C
ffi.cdef [[
struct pair_keys_wakeup { int32_t common_pid, pid, target_cpu; };
struct pair_keys_switch { int32_t common_pid, prev_pid, next_pid; };
]]
local WAKEUP, SWITCH = C.EVENT_FIRST, C.EVENT_FIRST + 1

local function event(name, class, fields, type, attrs)
  local by_name = {}
  for i, field in ipairs(fields) do
    by_name[field] = { name = field, type = 'int', offset = 4 * (i - 1), size = 4, elem_size = 4, count = 1,
      flags = C.FIELD_SIGNED }
  end
  return { name = name, class = class, fields = by_name, attrs = attrs, view = { payload = ffi.typeof(type .. ' *') } }
end

local function wakeups(attrs)
  return event('sched:sched_wakeup', WAKEUP, { 'common_pid', 'pid', 'target_cpu' }, 'struct pair_keys_wakeup',
    attrs or { key = 'pid' })
end

local function switches(filter)
  local e = event('sched:sched_switch', SWITCH, { 'common_pid', 'prev_pid', 'next_pid' }, 'struct pair_keys_switch',
    { key = 'next_pid' })
  e.filter = filter
  return e
end

local anchors = {}
local function set(e, class, cpu, type, ...)
  local raw = ffi.new(type, ...)
  anchors[#anchors + 1] = raw
  e.class, e.cpu, e.raw, e.raw_size = class, cpu, ffi.cast('const uint8_t *', raw), ffi.sizeof(raw)
end
local function wakeup(e, cpu, waker, pid, target) set(e, WAKEUP, cpu, 'struct pair_keys_wakeup', waker, pid, target) end
local function switch(e, cpu, from, to) set(e, SWITCH, cpu, 'struct pair_keys_switch', from, from, to) end

--- Whether the last of the events, made by the functions, may start a pair.
local function may_start(stages, instance, ...)
  local makers = { ... }
  local list = ffi.new('struct event[?]', #makers)
  for i, make in ipairs(makers) do make(list[i - 1]) end
  local fill, unneeded = pair_keys.filler({ stages = stages }, {}, instance, {})
  fill(list, #makers)
  local may = list[#makers - 1].flags % 4 < C.EVENT_NO_FIRST
  assert.equal(may and 0 or 1, unneeded[0])
  return may
end

describe('wakeups', function()
  it('worked trace 21: of a task that its cpu runs already', function()
    local stages = { { wakeups() }, { switches() } }
    local function runs(e) switch(e, 0, 5, 7) end
    local function woken(e) wakeup(e, 1, 3, 7, 0) end
    assert.is_false(may_start(stages, 'cpu', runs, woken))
    assert.is_true(may_start(stages, 'cpu', runs, function(e) wakeup(e, 1, 3, 7, 1) end))
    assert.is_true(may_start(stages, 'cpu', runs, function(e) wakeup(e, 1, 3, 8, 0) end))
    assert.is_true(may_start(stages, 'cpu', runs, function(e) switch(e, 0, 7, 9) end, woken))
    assert.is_true(may_start(stages, 'cpu', woken))
  end)

  it('is not known where switches are filtered, not of all cpus or lost', function()
    local function runs(e) switch(e, 0, 5, 7) end
    local function woken(e) wakeup(e, 1, 3, 7, 0) end
    assert.is_true(may_start({ { wakeups() }, { switches 'next_pid > 0' } }, 'cpu', runs, woken))
    assert.is_true(may_start({ { wakeups() }, { switches() } }, 'tid', runs, woken))
    for _, cpu in ipairs { 0, -1 } do
      assert.is_true(may_start({ { wakeups() }, { switches() } }, 'cpu', runs, function(e)
        e.class, e.cpu = C.EVENT_LOST, cpu
      end, woken))
    end
    assert.is_false(may_start({ { wakeups() }, { switches() } }, 'cpu', runs, function(e)
      e.class, e.cpu = C.EVENT_LOST, 1
    end, woken))
  end)

  it('of a task by itself', function()
    assert.is_false(may_start({ { wakeups() }, { switches 'next_pid > 0' } }, 'tid',
      function(e) wakeup(e, 0, 7, 7, 1) end))
    assert.is_true(may_start({ { wakeups() }, { switches 'next_pid > 0' } }, 'tid',
      function(e) wakeup(e, 0, 6, 7, 1) end))
  end)

  it('has a role besides', function()
    local list = ffi.new 'struct event[1]'
    wakeup(list[0], 0, 6, 7, 1)
    local stages = { { wakeups { key = 'pid', role = 'pid == 7 ? 2 : 1' } }, { switches() } }
    local fill = pair_keys.filler({ stages = stages }, {}, 'cpu', {})
    fill(list, 1)
    assert.equal(C.EVENT_NO_FIRST, list[0].flags)
  end)

  it('needs no loop where there are none', function()
    assert.is_nil((pair_keys.filler({ stages = { { switches() }, { switches() } } }, {}, 'cpu', {})))
  end)
end)

describe('keys that take part', function()
  it('are asked for', function()
    local stages = { { switches() }, { switches() } }
    local fill = pair_keys.filler({ stages = stages, has = function(pid) return pid == 7 end }, {}, 'cpu', {})
    local list = ffi.new 'struct event[2]'
    switch(list[0], 0, 5, 7)
    switch(list[1], 0, 7, 5)
    fill(list, 2)
    assert.equal(0, list[0].flags)
    assert.equal(C.EVENT_NO_FIRST + C.EVENT_NO_SECOND, list[1].flags)
  end)
end)
