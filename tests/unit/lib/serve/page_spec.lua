-- SPDX-License-Identifier: GPL-2.0-only
--- Reports as JSON for the page of --serve.
local hist = require 'bindings.base.hist'
local page = require 'lib.serve.page'
local tables = require 'bindings.base.table'

--- Returns the report with the rows of a table.
local function report(columns, rows, kinds)
  local one = page.new()
  one:table(tables.new('t', columns), rows, kinds)
  return one:take(1, true, 1000, 7, 0)
end

describe('a report of the page', function()
  it('has counts by power of two, those below 0 before the others', function()
    local positive, negative = hist.new(), hist.new()
    for _, value in ipairs { 0, 5, 5 } do positive:add(value) end
    for _, value in ipairs { 2, 7 } do negative:add(value) end
    local columns, kinds = { { name = 'event' }, { name = 'value', metric = 'histogram' } },
      { event = 'label', value = 'histogram' }
    local text = report(columns, { { event = 'a', value = positive }, { event = 'b', value = 6 },
      { event = 'c', value = { positive = positive, negative = negative } }, { event = 'd', value = {
      negative = negative } } }, kinds)
    assert.equal('"rows":[["a",[[-1,1],[2,2]]],["b",[[2,1]]],["c",[[-2,2],[-1,1],[2,2]]],["d",[[-2,2]]]]',
      text:match '"rows":.*%]%]%]')
  end)

  it('has the time of a table that is about an earlier one', function()
    local one, spec = page.new(), tables.new('t', { { name = 'n' } })
    local function times(at, to)
      one:table(spec, { { n = 1 } }, {}, at)
      return one:take(1, true, to, 7, 0):match '"more":0,?"?(%l*)"?:?(%d*)}'
    end
    assert.same({ '', '' }, { times(nil, 1000) })
    assert.same({ 'at', '1000' }, { times(1000, 2000) })
    assert.same({ '', '' }, { times(3000, 3000) })
  end)

  it('has the unit of a column if all rows have the same', function()
    local function units_of(...)
      local rows = {}
      for i, unit in ipairs { ... } do rows[i] = { max = i, unit = unit } end
      local columns = { { name = 'max', unit_of = function(row) return row.unit end } }
      return report(columns, rows, { max = 'gauge' }):match '"unit":"(%l+)"'
    end
    assert.equal('ns', units_of('ns', 'ns'))
    assert.equal('bytes', units_of 'bytes')
    assert.equal(nil, units_of('ns', 'bytes'))
    assert.equal(nil, units_of())
  end)
end)
