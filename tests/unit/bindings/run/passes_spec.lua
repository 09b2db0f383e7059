-- SPDX-License-Identifier: GPL-2.0-only
-- The order in which a batch goes through the passes, and how many of its events each gets.
local ffi = require 'ffi'
local passes = require 'bindings.run.passes'

local C = ffi.C

--- Sends n events of the first class through, and returns what log() got.
local function run(add, n, flags)
  local all, seen = passes.new(), {}
  add(all, function(...) seen[#seen + 1] = table.concat({ ... }, ' ') end)
  local list = ffi.new('struct event[?]', n)
  for i = 0, n - 1 do list[i].class, list[i].time = C.EVENT_FIRST, i end
  all:compile()(list, n, flags or 0)
  return seen
end

--- A loop that logs each event's time.
local function branches(log, name)
  return { { class = C.EVENT_FIRST, code = 'log(name, e.time)', bound = { log = log, name = name } } }
end

describe('passes', function()
  it('are ordered by stage, then as they were added', function()
    local seen = run(function(all, log)
      for _, stage in ipairs { 'feed', 'handle', 'limit', 'count', 'filter', 'prepare', 'target' } do
        all:add(stage, stage, function(_, n) log(stage, n) end)
      end
      all:add('filter', 'other', function() log 'second filter' end)
    end, 3)
    assert.same({ 'count 3', 'filter 3', 'second filter', 'target 3', 'limit 3', 'prepare 3', 'handle 3', 'feed 3' },
      seen)
  end)

  it('with branches are loops, without branches nothing', function()
    local seen = run(function(all, log)
      all:add('handle', 'handle', branches(log, 'handle'))
      all:add('count', 'count', branches(log, 'count'))
      all:add('filter', 'none', {})
      all:add('filter', 'nil', nil)
    end, 2)
    assert.same({ 'count 0', 'count 1', 'handle 0', 'handle 1' }, seen)
  end)

  it('get no more than an earlier one has left', function()
    local seen = run(function(all, log)
      all:add('limit', 'limit', function() return 1 end)
      all:add('count', 'count', branches(log, 'count'))
      all:add('handle', 'handle', branches(log, 'handle'))
    end, 2)
    assert.same({ 'count 0', 'count 1', 'handle 0' }, seen)
  end)

  it('get the flags of the batch', function()
    local seen = run(function(all, log) all:add('handle', 'handle', function(_, _, flags) log(flags) end) end, 1,
      C.BATCH_LOST)
    assert.same({ tostring(tonumber(C.BATCH_LOST)) }, seen)
  end)

  it('of consumers surround the handlers, the keys of each just before it is fed', function()
    local seen = run(function(all, log)
      local function consumer(name)
        return {
          keys = branches(log, name .. ' key'),
          prepare = function(_, _, n) log(name, 'prepares', n) end,
          feed = function(_, _, n) log(name, 'is fed', n) end,
        }
      end
      all:add_consumer(consumer 'first')
      all:add_consumer(consumer 'second')
      all:add_consumer { poll = function() end }
      all:add('handle', 'handle', function() log 'handle' end)
    end, 1)
    assert.same({ 'first prepares 1', 'second prepares 1', 'handle', 'first key 0', 'first is fed 1', 'second key 0',
      'second is fed 1' }, seen)
  end)
end)
