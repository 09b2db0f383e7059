-- SPDX-License-Identifier: GPL-2.0-only
--- Each measurement is in one cell of the picture, at its time and value, however the grid has grown.
local heatmap = require 'lib.heatmap'

local folder

local function draw(settings, measurements)
  settings.file = folder .. '/map.svg'
  local map = heatmap.new(settings)
  for _, m in ipairs(measurements) do map:add(m[1], m[2]) end
  map:write()
  local file = assert(io.open(settings.file))
  local svg = file:read '*a'
  file:close()
  return svg
end

--- The contents of the titles of the cells: from, to in s, low and high as text, count.
local function cells(svg)
  local list = {}
  for title in svg:gmatch '<rect class="c%d+"[^>]*><title>(.-)</title>' do
    local from, to, low, high, count = title:match '^(%S+) to (%S+) s, (.-) to (.-): (%d+)$'
    list[#list + 1] = { from = tonumber(from), to = tonumber(to), low = low, high = high, count = tonumber(count) }
  end
  return list
end

local function sum(list)
  local n = 0
  for _, cell in ipairs(list) do n = n + cell.count end
  return n
end

describe('a heat map', function()
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    os.execute('mkdir ' .. folder)
  end)
  after_each(function() os.execute('rm -r ' .. folder) end)

  it('counts by time and value', function()
    local svg = draw({}, { { 5e9, 1000 }, { 5e9, 1000 }, { 6e9, 1000 }, { 5e9, 2e6 } })
    local list = cells(svg)
    assert.equal(4, sum(list))
    table.sort(list, function(a, b) return a.count > b.count end)
    assert.same({ 0, 2, '939 ns', '1.02 us' }, { list[1].from, list[1].count, list[1].low, list[1].high })
    assert.truthy(svg:find('4 measurements', 1, true))
  end)

  it('loses none when the grid grows in time or value', function()
    for _, scale in ipairs { 'log', 'linear' } do
      local list = {}
      for i = 1, 5000 do list[i] = { i * i * 1000, (i * 7919) % 100003 } end
      assert.equal(5000, sum(cells(draw({ scale = scale }, list))))
    end
  end)

  it('has each cell where its measurement is', function()
    for _, value in ipairs { 1, 3, 1023, 1025, 1e6, 12345678, 7e12 } do
      local list = cells(draw({ unit = '' }, { { 0, value } }))
      assert.equal(1, #list)
      local low, high = tonumber(list[1].low), tonumber(list[1].high)
      assert.is_true(low <= value * 1.005 and value <= high * 1.005, ('%s in %s to %s'):format(value, low, high))
    end
  end)

  it('accepts 0 and late events', function()
    assert.equal(3, sum(cells(draw({}, { { 1e9, 0 }, { 5e8, 10 }, { 1e9, 2 ^ 60 + 0ULL } }))))
  end)

  it('escapes its title', function()
    local svg = draw({ title = '</text><script>alert("x")</script>&\1' }, { { 0, 1 } })
    assert.falsy(svg:find('<script>alert', 1, true))
    assert.truthy(svg:find('&lt;/text&gt;&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;\\x01', 1, true))
  end)

  it('writes the values if no picture is requested, one file per name', function()
    local map = heatmap.new { file = folder .. '/a', name = 'x/y' }
    map:add(123456789012, 42)
    map:add(123456789013, 7ULL)
    map:write { warn = function() end }
    local file = assert(io.open(folder .. '/a-x_y.lat'))
    assert.equal('123456789012 42\n123456789013 7\n', file:read '*a')
    file:close()
  end)

  it('says where it is, or that it has no values', function()
    local lines = {}
    for i = 0, 1 do
      local map = heatmap.new { file = folder .. '/where.svg' }
      if i > 0 then map:add(1, 2) end
      map:write { warn = function(_, line) lines[#lines + 1] = line end }
    end
    assert.same({ ('The heat map has no values: %s/where.svg is not written'):format(folder),
      ('The heat map is in %s/where.svg'):format(folder) }, lines)
  end)

  it('does nothing without a file', function()
    local map = heatmap.new {}
    map:add(1, 2)
    map:write()
  end)
end)
