-- SPDX-License-Identifier: GPL-2.0-only
-- Calls are written as in "1:F 3:G 7:g 9:f": a capital letter enters a function, a small one leaves it.
local calltree = require 'lib.calltree'

local F = 6 -- number of the function F

--- Feeds a tree; returns it, and the durations in the order of their ends.
local function feed(text, settings)
  local ended = {}
  settings = settings or {}
  settings.ended = function(f, key, ns) ended[#ended + 1] = ('%s%s %d'):format(string.char(64 + f), key or '', ns) end
  local tree = calltree.new(settings)
  for time, name, key in text:gmatch '(%d+):(%a)(%d*)' do
    key = tonumber(key) or 0
    local f = name:upper():byte() - 64
    if name == name:upper() then tree:enter(f, key, tonumber(time)) else tree:leave(f, key, tonumber(time)) end
  end
  return tree, table.concat(ended, ', ')
end

--- "F>G" for each edge, with calls, total and own time.
local function nodes(tree)
  local list = {}
  for _, node in ipairs(tree:list()) do
    local path, at = string.char(64 + node.f), node.parent
    while at.depth > 0 do
      path, at = string.char(64 + at.f) .. '>' .. path, at.parent
    end
    list[#list + 1] = ('%s %d %d %d%s'):format(path, node.calls, tonumber(node.hist:stats().sum), node.own,
      node.recursive and ' R' or '')
  end
  return list
end

describe('calls within calls', function()
  it('worked trace 19: edges and durations', function()
    local tree, ended = feed '1:F 3:G 7:g 9:f'
    assert.equal('G0 4, F0 8', ended)
    assert.same({ 'F 1 8 4', 'F>G 1 4 4' }, nodes(tree))
  end)

  it('worked trace 20: a lost return', function()
    local tree, ended = feed '1:F 3:G 9:f 10:H 12:h 14:g'
    assert.equal('F0 8, H0 2, G0 11', ended)
    assert.same({ 'F 1 8 8', 'F>G 1 11 9', 'F>G>H 1 2 2' }, nodes(tree))
    assert.equal(0, tree.open)
  end)

  it('marks recursion, and counts it where it was first called', function()
    local tree, ended = feed '0:F 1:G 2:F 3:G 4:g 5:f 8:g 9:f'
    assert.equal('G0 1, F0 3, G0 7, F0 9', ended)
    assert.same({ 'F 2 12 4 R', 'F>G 2 8 5 R' }, nodes(tree))
  end)

  it('has self times that add up to the whole', function()
    local tree = feed '0:F 1:G 2:H 4:h 5:H 6:h 9:g 10:G 12:g 20:f'
    local own = 0
    for _, node in ipairs(tree:list()) do own = own + node.own end
    assert.equal(20, own)
    assert.same({ 'F 1 20 10', 'F>G 2 10 7', 'F>G>H 2 3 3' }, nodes(tree))
  end)

  it('keeps keys separate', function()
    local tree, ended = feed '0:F1 1:F2 2:G2 3:g1 4:f1 5:g2 6:f2'
    assert.equal('F1 4, G2 3, F2 5', ended)
    assert.equal(1, tree.unstarted)
  end)

  it('drops calls that may have ended in a loss', function()
    local tree = feed '0:F1 1:F2 2:G2'
    tree:lose(2)
    assert.equal(2, tree.dropped)
    assert.equal(1, tree.open)
    tree:leave(F, 2, 9)
    tree:leave(F, 1, 9)
    assert.equal(1, tree.unstarted)
    tree:enter(F, 1, 10)
    tree:lose()
    assert.equal(3, tree.dropped)
    assert.equal(0, tree.open)
  end)

  it('limits the open calls', function()
    local tree = calltree.new {}
    for i = 1, 5000 do tree:enter(1 + i % 2, 0, i) end
    assert.is_true(tree.open <= 1024)
    assert.equal(5000, tree.open + tree.evicted)
    for key = 1, 70000 do
      for i = 1, 20 do tree:enter(1, key, i) end
    end
    assert.is_true(tree.open <= 2 ^ 20)
    assert.equal(1405000, tree.open + tree.evicted)
  end)

  it('agrees with a list of calls, in any order', function()
    for seed = 1, 50 do
      math.randomseed(seed)
      local ended, want, open, calls, total, sums = {}, {}, {}, {}, {}, {}
      local tree = calltree.new { ended = function(f, key, ns) ended[#ended + 1] = ('%d %d %d'):format(f, key, ns) end }
      local time, unstarted, dropped = 0, 0, 0
      for _ = 1, 500 do
        local f, key, what = math.random(4), math.random(3), math.random(20)
        time = time + math.random(0, 9)
        if what == 1 then
          tree:lose(key)
          for i = #open, 1, -1 do
            if open[i].key == key then dropped = dropped + #table.remove(open, i) end
          end
        elseif what <= 10 then
          tree:enter(f, key, time)
          calls[f] = (calls[f] or 0) + 1
          open[#open + 1] = { 'one', f = f, key = key, time = time }
        else
          local i = #open
          while i > 0 and (open[i].f ~= f or open[i].key ~= key) do i = i - 1 end
          if i == 0 then
            unstarted = unstarted + 1
          else
            local ns = time - table.remove(open, i).time
            want[#want + 1] = ('%d %d %d'):format(f, key, ns)
            total[f] = (total[f] or 0) + ns
          end
          tree:leave(f, key, time)
        end
      end
      assert.same(want, ended)
      assert.same({ unstarted, dropped, #open }, { tree.unstarted, tree.dropped, tree.open })
      local counted = {}
      for _, node in ipairs(tree:list()) do
        counted[node.f] = (counted[node.f] or 0) + node.calls
        sums[node.f] = (sums[node.f] or 0) + tonumber(node.hist:stats().sum)
      end
      assert.same({ calls, total }, { counted, sums })
    end
  end)

  it('passes the data of dropped calls back', function()
    local dropped = {}
    local tree = calltree.new {
      dropped = function(key, time, first) dropped[#dropped + 1] = ('%s %d %s'):format(key, time, first) end,
    }
    tree:enter(1, 7, 10, 'f')
    tree:enter(2, 7, 12, 'g')
    tree:enter(1, 8, 11, 'h')
    assert.equal(10, tree:oldest())
    tree:leave(2, 7, 13)
    assert.same({}, dropped)
    tree:lose(7)
    assert.same({ '7 10 f' }, dropped)
    assert.equal(11, tree:oldest())
    tree:leave(1, 8, 5) -- before it began
    assert.same({ '7 10 f', '8 11 h' }, dropped)
    assert.equal(math.huge, tree:oldest())
  end)

  it('clears the counts, but not the open calls', function()
    local tree = feed '0:F 1:G 2:g'
    tree:clear()
    assert.same({}, nodes(tree))
    tree:leave(F, 0, 9)
    assert.same({ 'F 0 9 8' }, nodes(tree))
  end)
end)
