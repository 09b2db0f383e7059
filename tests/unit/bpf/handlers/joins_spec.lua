-- SPDX-License-Identifier: GPL-2.0-only
-- Joins in which no key matched.
local join = require 'lib.join'
local joins = require 'bpf.handlers.joins'

--- Returns the lines about one join, after calls of its methods.
local function differences(calls, settings)
  local j = join.new(settings)
  calls(j)
  local lines = joins.differences()
  j = nil -- luacheck: ignore 311
  collectgarbage()
  return lines
end

local LINE = 'lib.join: none of 2 finish() had the key of one of 3 start() before it'

describe('a join', function()
  it('whose keys never match is known', function()
    assert.same({ LINE }, differences(function(j)
      for key = 1, 3 do j:start(key, key) end
      for key = 4, 5 do j:finish(key, key) end
    end))
    assert.same({ LINE }, differences(function(j)
      for time = 1, 3 do j:start(1, time) end
      for time = 4, 5 do j:finish('1', time) end
    end))
    assert.same({ LINE }, differences(function(j)
      for key = 1, 3 do j:start(key, key) end -- the older ones go
      for key = 4, 5 do j:finish(key, key) end
    end, { max = 2 }))
  end)

  it('has a match, also if the pair does not count', function()
    assert.same({}, differences(function(j)
      j:start(1, 1)
      j:start(2, 1)
      j:finish(1, 2)
      j:finish(3, 2)
    end))
    assert.same({}, differences(function(j)
      j:start(1, 1)
      j:start(2, 1)
      j:finish(1, 1000)
      j:finish(3, 1000)
    end, { expires = 10 }))
  end)

  it('need not have any', function()
    assert.same({}, differences(function(j) j:start(1, 1) end))
    assert.same({}, differences(function(j) j:finish(1, 1) end))
  end)

  it('that programs have counted is known', function()
    local update = require('bindings.base.countable').of(join.new()).join
    local function count(found)
      return function(j)
        update(j).update({ unstarted = 2, replaced = 1, expired = 0, evicted = 0, found = found },
          function() return 2 end)
      end
    end
    assert.same({ LINE }, differences(count(0)))
    assert.same({}, differences(count(1)))
  end)
end)
