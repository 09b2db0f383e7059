-- SPDX-License-Identifier: GPL-2.0-only
local ffi = require 'ffi'
local dispatch = require 'bindings.view.dispatch'

--- Runs a loop over branches on events of these classes; returns the classes that it saw, and the branch.
local function run(branches, classes)
  local list, seen = ffi.new('struct event[?]', #classes), {}
  for i, class in ipairs(classes) do list[i - 1].class = class end
  for i, branch in ipairs(branches) do
    local name = branch.name or 'see_' .. i
    branch.code = name .. '(class)'
    branch.bound = { [name] = function(class) seen[#seen + 1] = name .. ' ' .. class end }
  end
  dispatch.loop('test', branches)(list, #classes)
  return table.concat(seen, ', ')
end

describe('a loop over events', function()
  it('runs the branch of each class, and skips other classes', function()
    assert.equal('see_1 8, see_2 9, see_1 8', run({ { class = 8 }, { class = 9 } }, { 8, 9, 10, 8, 0 }))
  end)

  it('has one branch for neighbors that do the same', function()
    local branches = { { class = 10, same = 'x' }, { class = 8, same = 'x', name = 'first' }, { class = 9, same = 'x' },
      { class = 12, same = 'x', name = 'apart' }, { class = 13, name = 'other' } }
    assert.equal('first 10, first 8, apart 12, other 13, first 9', run(branches, { 10, 8, 12, 13, 9, 11, 7, 14 }))
  end)

  it('is split if there are very many classes', function()
    local branches, classes, expected = {}, {}, {}
    for i = 1, 5000 do
      branches[i] = { class = 7 + i, same = i > 100 and i <= 150 and 'x' or nil }
      classes[i] = 7 + i
      expected[i] = ('see_%d %d'):format(i > 100 and i <= 150 and 101 or i, 7 + i)
    end
    assert.equal(table.concat(expected, ', '), run(branches, classes))
  end)

  it('is divided again where there are thousands', function()
    local branches, classes, expected = {}, {}, {}
    for i = 1, 5000 do
      branches[i], classes[i], expected[i] = { class = 7 + 2 * i }, 7 + 2 * i, ('see_%d %d'):format(i, 7 + 2 * i)
    end
    assert.equal(table.concat(expected, ', '), run(branches, classes))
    assert.equal('', run(branches, { 0, 8, 5000, 10008, 20000 }))
  end)
end)
