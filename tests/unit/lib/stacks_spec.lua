-- SPDX-License-Identifier: GPL-2.0-only
--- Sums by stack: each stack is printed once with its sum, largest first, whatever its number in the session.
local stacks = require 'lib.stacks'

local session = { stack_lines = function(id) return { ('addr%d f%d'):format(id, id), 'addr0 main' } end }

--- An output that collects what it gets.
local function gather(format)
  local out = { format = format or 'text', text = '', rows = nil }
  function out:table(_, rows, _, shown)
    self.rows = rows
    if self.format == 'text' and #rows > 0 then self.text = self.text .. 'STAMP\n' .. shown() end
  end
  return out
end

describe('sums by stack', function()
  it('are printed largest first with their stacks', function()
    local sums, out = stacks.new(session, { 'bytes', 'calls' }), gather()
    sums:add(7, 'a', 100, 1)
    sums:add(3, 'b', 300, 1)
    sums:add(7, 'a', 400ULL, 1)
    sums:add(7, 'c', 5, 1)
    sums:print(out, { limit = 2 })
    assert.equal([[
STAMP
a: bytes 500, calls 2
    addr7 f7
    addr0 main
b: bytes 300, calls 1
    addr3 f3
    addr0 main
]], out.text)
  end)

  it('are rows in other formats', function()
    local sums, out = stacks.new(session, { 'ns' }), gather 'json'
    sums:add(1, 'a', 2)
    sums:print(out)
    assert.same({ { stack = { 'addr1 f1', 'addr0 main' }, comm = 'a', ns = 2 } }, out.rows)
  end)

  it('can be subtracted and cleared', function()
    local before, after, out = stacks.new(session, { 'n' }), stacks.new(session, { 'n' }), gather 'json'
    before:add(1, 'a', 10)
    before:add(2, 'a', 5)
    after:add(1, 'a', 10)
    after:add(3, 'a', 1)
    after:subtract(before)
    after:print(out)
    assert.same({ -5, 1 }, { out.rows[1].n, out.rows[2].n })
    assert.equal(2, #out.rows)
    after:clear()
    out.rows = nil
    after:print(out)
    assert.same({}, out.rows)
  end)

  it('that have no room share one row', function()
    local sums, out = stacks.new(session, { 'n' }, { max_keys = 2 }), gather()
    for i = 1, 5 do sums:add(i, 'a', i) end
    sums:print(out)
    assert.truthy(out.text:find('(other): n 12\n    (other)\n', 1, true))
  end)
end)
