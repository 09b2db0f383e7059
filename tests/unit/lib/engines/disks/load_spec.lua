-- SPDX-License-Identifier: GPL-2.0-only
-- The length of a queue over time, from requests whose times are known.
local load = require 'lib.engines.disks.load'

local DISK = 1

local sums, id

local function figures(now)
  local found
  sums:each(now, function(_, hist, of)
    found = of
    found.requests = hist and hist:stats().count or 0
  end)
  return found
end

describe('the load of a disk', function()
  before_each(function()
    sums = load.new()
    id = sums.id(DISK, 0, 0, 0)
  end)

  it('is the average number of requests', function()
    sums:begin(id, 0)
    sums:begin(id, 200) -- two from here
    sums:issue(id, 50)
    sums:finish(id, 400, 4096, 400)
    sums:finish(id, 500, 512, 300)
    local found = figures(1000)
    assert.equal((200 + 2 * 200 + 100) / 1000, found.queue)
    assert.equal(2, found.most)
    assert.equal(50, found.busy)
    assert.equal(4608, found.bytes)
    assert.equal(50, found.waited_ns)
    assert.equal(2, found.requests)
  end)

  it('counts a request in each interval in which it is in flight', function()
    sums:begin(id, 600)
    local first = figures(1000)
    assert.equal(0.4, first.queue)
    sums:clear(1000)
    sums:finish(id, 1500, 512, 900)
    local second = figures(2000)
    assert.equal(0.5, second.queue)
    assert.equal(1, second.most)
    assert.equal(1, second.requests)
    sums:clear(2000)
    local third = figures(3000)
    assert.equal(0, third.queue)
    assert.equal(0, third.most)
  end)

  it('forgets what is in flight when events are lost', function()
    sums:begin(id, 100)
    sums:forget(300)
    assert.equal(0.2, figures(1000).queue)
    sums:begin(id, 1000)
    assert.equal(1, figures(1000).most)
  end)
end)
