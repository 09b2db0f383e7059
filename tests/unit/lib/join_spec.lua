-- SPDX-License-Identifier: GPL-2.0-only
local join = require 'lib.join'

describe('join', function()
  it('hands over the values and the time', function()
    local j = join.new()
    j:start(7, 100, 'a', 2, nil, false)
    assert.same({ 50, 'a', 2, nil, false }, { j:finish(7ULL, 150) })
    assert.is_nil(j:finish(7, 200))
    assert.equal(1, j.unstarted)
    assert.equal(0, j:count())
  end)

  it('does not mix the values of reused starts', function()
    local j = join.new()
    j:start(1, 1, 'old', 'old', 'old', 'old')
    j:finish(1, 2)
    j:start(2, 3, 'new')
    assert.same({ 1, 'new' }, { j:finish(2, 4) })
  end)

  it('takes the newest start, and no time below 0', function()
    local j = join.new()
    j:start('k', 100, 1)
    j:start('k', 200, 2)
    local ns, value = j:finish('k', 190)
    assert.equal(0, ns)
    assert.equal(2, value)
    assert.equal(1, j.replaced)
  end)

  it('drops what waited too long', function()
    local j = join.new { expires = '1us' }
    j:start(1, 0)
    j:start(2, 0)
    assert.is_nil(j:finish(1, 1001))
    assert.equal(1000, (j:finish(2, 1000)))
    assert.equal(1, j.expired)
  end)

  it('drops what a gap may have falsified', function()
    local j = join.new()
    j:start(1, 100)
    j.lost { from = 150, to = 300 }
    j:start(2, 200)
    j:start(3, 300)
    assert.is_nil(j:finish(1, 400))
    assert.is_nil(j:finish(2, 400))
    assert.equal(100, (j:finish(3, 400)))
    assert.equal(2, j.doubtful)
    j.lost { from = 10, to = 20 } -- of another CPU, reported late
    j:start(4, 350)
    assert.equal(50, (j:finish(4, 400)))
  end)

  it('follows threads that get another id', function()
    local j, event = join.new(), {}
    local session = { id_changes = function() return event, false end }
    local handlers = { lost = j.lost }
    assert.equal(handlers, j:follow(session, handlers))
    j:start(7, 100, 'executes')
    j:start(5, 110, 'first')
    handlers[event] { old_pid = 7, pid = 5 }
    assert.is_nil(j:finish(7, 150))
    assert.same({ 50, 'executes' }, { j:finish(5, 150) })
  end)

  it('follows none whose ids are not known, or are those of another pid namespace', function()
    assert.same({}, join.new():follow({ id_changes = function() end }, {}))
    assert.same({}, join.new():follow({ id_changes = function() return {}, true end }, {}))
  end)

  it('is bounded: the older half goes', function()
    local j = join.new { max = 100 }
    for i = 1, 1000 do j:start(i, i) end
    assert.is_true(j:count() <= 100)
    assert.equal(1000, j.evicted + j:count())
    assert.equal(1, (j:finish(1000, 1001)))
    assert.is_nil(j:finish(1, 1001))
  end)

  it('moves a start to another key, which loses its own', function()
    local j = join.new()
    j:start(5, 100, 'a')
    j:start(4, 110, 'b')
    j:move(5, 4)
    j:move(6, 7)
    assert.is_nil(j:finish(5, 120))
    assert.same({ 20, 'a' }, { j:finish(4, 120) })
    assert.equal(0, j:count())
  end)

  it('refuses wrong calls', function()
    local _, message = pcall(join.new().start, join.new(), 1, 'x')
    assert.matches("takes a key and a time %(ev._time%), not 'x'", message)
    assert.matches("there is no setting 'expire'", select(2, pcall(join.new, { expire = 1 })))
    assert.matches('expires: ', select(2, pcall(join.new, { expires = 'soon' })))
  end)
end)
