-- SPDX-License-Identifier: GPL-2.0-only
-- Flags for the pair matcher: wakeups that no switch will follow.
local ffi = require 'ffi'
local dispatch = require 'bindings.view.dispatch'
local pair_keys = require 'bindings.pairs.keys'

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

--- A function(events, n) that prepares the events of a batch for the matcher.
local function filler(config, instance)
  return dispatch.loop('keys', pair_keys.branches(config, instance, {}))
end

--- Feeds the events, made by the functions. Returns the statistics of a matcher in which wakeups start pairs and
--- nothing ends one.
local function feed(stages, instance, ...)
  local makers, stats = { ... }, ffi.new 'struct pairs_stats'
  local list, out = ffi.new('struct event[?]', #makers), ffi.new('struct pair[?]', #makers)
  local matcher = ffi.gc(C.pairs_new(ffi.new('struct pairs_config', { stages = 2 })), C.pairs_free)
  C.pairs_add_class(matcher, WAKEUP, 0)
  pair_keys.set_running(matcher, { stages = stages }, {}, instance)
  for i, make in ipairs(makers) do
    make(list[i - 1])
    list[i - 1].time = i
  end
  assert.equal(0, C.pairs_feed(matcher, list, #makers, out))
  C.pairs_read_stats(matcher, stats)
  return stats
end

--- Whether the last of the events may start a pair. If not: whether it is needless, or it is unknown.
local function may_start(...)
  local stats = feed(...)
  return stats.stored == 1, stats.unneeded == 1 and 'unneeded' or stats.dropped == 1 and 'unknown' or nil
end

describe('wakeups', function()
  it('worked trace 21: of a task that its CPU already runs', function()
    local stages = { { wakeups() }, { switches() } }
    local function runs(e) switch(e, 0, 5, 7) end
    local function woken(e) wakeup(e, 1, 3, 7, 0) end
    assert.same({ false, 'unneeded' }, { may_start(stages, 'cpu', runs, woken) })
    assert.is_true(may_start(stages, 'cpu', runs, function(e) wakeup(e, 1, 3, 7, 1) end))
    assert.is_true(may_start(stages, 'cpu', runs, function(e) wakeup(e, 1, 3, 8, 0) end))
    assert.is_true(may_start(stages, 'cpu', runs, function(e) switch(e, 0, 7, 9) end, woken))
    assert.is_true(may_start(stages, 'cpu', woken))
  end)

  it('is unknown if switches are filtered or not from all CPUs', function()
    local function runs(e) switch(e, 0, 5, 7) end
    local function woken(e) wakeup(e, 1, 3, 7, 0) end
    assert.is_true(may_start({ { wakeups() }, { switches 'next_pid > 0' } }, 'cpu', runs, woken))
    assert.is_true(may_start({ { wakeups() }, { switches() } }, 'tid', runs, woken))
  end)

  it('of a task that its CPU may run, after lost events', function()
    local stages = { { wakeups() }, { switches() } }
    local function runs(e) switch(e, 0, 5, 7) end
    local function woken(e) wakeup(e, 1, 3, 9, 0) end
    for _, cpu in ipairs { 0, -1 } do
      local function loses(e) e.class, e.cpu = C.EVENT_LOST, cpu end
      assert.same({ false, 'unknown' }, { may_start(stages, 'cpu', runs, loses, woken) })
      assert.is_true(may_start(stages, 'cpu', runs, loses, function(e) switch(e, 0, 9, 7) end, woken))
      -- A CPU that has never switched may not be traced at all.
      assert.is_true(may_start(stages, 'cpu', loses, woken))
      assert.is_true(may_start({ { wakeups() }, { switches 'next_pid > 0' } }, 'cpu', runs, loses, woken))
    end
    assert.is_true(may_start(stages, 'cpu', runs, function(e) e.class, e.cpu = C.EVENT_LOST, 1 end, woken))
  end)

  it('would last too long if the task was preempted', function()
    local list = ffi.new 'struct event[5]'
    switch(list[0], 0, 5, 7)
    list[1].class, list[1].cpu, list[1].key, list[1].period = C.EVENT_LOST, 0, 150, 1 -- 9 follows
    wakeup(list[2], 1, 3, 9, 0)
    switch(list[3], 0, 9, 7)
    switch(list[4], 0, 7, 9)
    for i = 0, 4 do list[i].time = 100 * (i + 1) end
    list[1].time = 110
    local stages, config = { { wakeups() }, { switches() } }, ffi.new('struct pairs_config', { stages = 2 })
    local matcher, out = ffi.gc(C.pairs_new(config), C.pairs_free), ffi.new 'struct pair[5]'
    C.pairs_add_class(matcher, WAKEUP, 0)
    C.pairs_add_class(matcher, SWITCH, 1)
    C.pairs_set_key(matcher, WAKEUP, 4, 4, 1)
    C.pairs_set_key(matcher, SWITCH, 8, 4, 1)
    pair_keys.set_running(matcher, { stages = stages }, {}, 'cpu')
    assert.equal(0, C.pairs_feed(matcher, list, 5, out))
  end)

  it('of a task by itself', function()
    assert.is_false(may_start({ { wakeups() }, { switches 'next_pid > 0' } }, 'tid',
      function(e) wakeup(e, 0, 7, 7, 1) end))
    assert.is_true(may_start({ { wakeups() }, { switches 'next_pid > 0' } }, 'tid',
      function(e) wakeup(e, 0, 6, 7, 1) end))
  end)

  it('cannot be of a machine that cannot be', function()
    local stages = { { wakeups() }, { switches() } }
    stages[1][1].machine = { index = 9999 }
    local matcher = ffi.gc(C.pairs_new(ffi.new('struct pairs_config', { stages = 2 })), C.pairs_free)
    assert.error_matches(function() pair_keys.set_running(matcher, { stages = stages }, {}, 'cpu') end,
      'cannot follow the running tasks: Invalid argument')
  end)

  it('can have a role', function()
    local list = ffi.new 'struct event[1]'
    wakeup(list[0], 0, 6, 7, 1)
    local stages = { { wakeups { key = 'pid', role = 'pid == 7 ? 2 : 1' } }, { switches() } }
    local fill = filler({ stages = stages }, 'cpu')
    fill(list, 1)
    assert.equal(C.EVENT_NO_FIRST, list[0].flags)
  end)

  it('need no loop', function()
    assert.same({}, pair_keys.branches({ stages = { { wakeups() }, { switches() } } }, 'cpu', {}))
  end)
end)

describe('selected keys', function()
  it('are asked for', function()
    local stages = { { switches() }, { switches() } }
    local fill = filler({ stages = stages, has = function(pid) return pid == 7 end }, 'cpu')
    local list = ffi.new 'struct event[2]'
    switch(list[0], 0, 5, 7)
    switch(list[1], 0, 7, 5)
    fill(list, 2)
    assert.equal(0, list[0].flags)
    assert.equal(C.EVENT_NO_FIRST + C.EVENT_NO_SECOND, list[1].flags)
  end)
end)
