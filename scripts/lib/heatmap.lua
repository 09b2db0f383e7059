-- SPDX-License-Identifier: GPL-2.0-only
--- Heat maps of values over time, such as latencies.
---
---   options = { heatmap = heatmap.option }
---   local map = heatmap.new { file = opt.heatmap, title = 'wakeup to switch' }
---   map:add(ev._time, ns)
---   map:write(out) -- at the end
---
--- FILE.svg and FILE.html are pictures. With any other name, the values are written to FILE.lat, a line "TIME VALUE"
--- for each, which `profscript heatmap` draws.
local invocation = require 'lib.command.invocation'
local svg = require 'lib.svg'
local sys = require 'bindings.base.sys'
local units = require 'lib.units'

local heatmap = {}

--- The declaration of the option --heatmap.
heatmap.option = { type = 'string', argument = 'FILE',
  help = 'draw a heat map of latencies over time to FILE.svg or FILE.html; else write the latencies to FILE.lat' }

local COLUMNS = 480 -- in memory; when they are full, columns become twice as wide
local OCTAVE = 8 -- rows per power of two
local ROWS = 64 * OCTAVE + 1 -- row 0: values less than 1
local LINEAR_ROWS = 256 -- in memory; when they are full, rows become twice as high
local FIRST_WIDTH = 1e6 -- initial width of a column in ns

local WIDTH, LEFT, RIGHT, TOP, BOTTOM = 1200, 76, 24, 56, 64
local MAX_DRAWN_COLUMNS, MAX_DRAWN_ROWS = 240, 96

--- From few to many. Brightness follows the count, so that the map can be read without seeing colors.
local PALETTE = { 'fff3b8', 'fee391', 'fece65', 'feb441', 'fd9a32', 'f67b20', 'e85f10', 'd04606', 'ac3405', '852704',
  '5c1a03', '360d02' }

--- A heat map.
---@class Heatmap
local Heatmap = {}
Heatmap.__index = Heatmap

--- Creates a heat map. Without a file its methods do nothing.
---@param settings { file?: string, name?: string, title?: string, unit?: string, scale?: 'log'|'linear' } name: added
--- to the file name, for one of several maps; unit: unit of the values, default 'ns'
---@return Heatmap
function heatmap.new(settings)
  local path, self = settings.file, setmetatable({ title = settings.title or settings.name or '' }, Heatmap)
  if not path then
    self.add = function() end
    self.write = self.add
    return self
  end
  self.unit, self.linear = settings.unit or 'ns', settings.scale == 'linear'
  local suffix = settings.name and '-' .. settings.name:gsub('[/%z]', '_') or ''
  self.draws = svg.kind(path) ~= nil
  if self.draws then
    self.path = path:gsub('(%.%w+)$', function(kind) return suffix .. kind end)
    self.rows = self.linear and LINEAR_ROWS or ROWS
    self.cells, self.width, self.height, self.total = {}, FIRST_WIDTH, 1, 0
    for i = 1, COLUMNS * self.rows do self.cells[i] = 0 end
  else
    self.path = ('%s%s.lat'):format(path, suffix)
  end
  svg.check(self.path)
  return self
end

--- Opens the .lat file, at the first value.
local function open_values(self)
  local file, message = sys.create(self.path)
  self.file = file or error(('cannot write %s'):format(message), 0)
  file:setvbuf('full', 65536)
end

--- Halves the number of columns or rows by adding each to its neighbor.
local function halve(self, dimension)
  local new, rows = {}, self.rows
  for i = 1, COLUMNS * rows do new[i] = 0 end
  for i = 1, COLUMNS * rows do
    local column, row = math.floor((i - 1) / rows), (i - 1) % rows
    if dimension == 'width' then column = math.floor(column / 2) else row = math.floor(row / 2) end
    local at = column * rows + row + 1
    new[at] = new[at] + self.cells[i]
  end
  self.cells, self[dimension] = new, self[dimension] * 2
end

--- Adds a value.
---@param time number ns, such as `ev._time`
---@param value number|integer64
function Heatmap:add(time, value)
  value = tonumber(value)
  if not self.draws then
    if not self.file then open_values(self) end
    self.file:write(('%d %d\n'):format(time, value))
    return
  end
  self.start = self.start or time
  local column = math.max(math.floor((time - self.start) / self.width), 0)
  while column >= COLUMNS do
    halve(self, 'width')
    column = math.floor((time - self.start) / self.width)
  end
  local row = 0
  if self.linear then
    row = math.max(math.floor(value / self.height), 0)
    while row >= LINEAR_ROWS do
      halve(self, 'height')
      row = math.floor(value / self.height)
    end
  elseif value >= 1 then
    row = math.min(math.floor(math.log(value) / math.log(2) * OCTAVE) + 1, ROWS - 1)
  end
  local at = column * self.rows + row + 1
  self.cells[at] = self.cells[at] + 1
  self.total = self.total + 1
end

--- Formats a value with three digits and its unit: 1500000 ns is '1.50 ms'.
local function value_text(value, unit)
  if not units.get(unit) then
    local s = ('%.3g'):format(value)
    return (s:find 'e' and ('%.0f'):format(value) or s) .. (unit == '' and '' or ' ' .. unit)
  end
  return units.text(value, unit)
end

--- Returns the lower bound of a row.
local function low_of(self, row)
  if self.linear then return row * self.height end
  return row <= 0 and 0 or 2 ^ ((row - 1) / OCTAVE)
end

--- Returns the row of a value as a fractional number.
local function row_of(self, value)
  if self.linear then return value / self.height end
  return value < 1 and 0 or math.log(value) / math.log(2) * OCTAVE + 1
end

--- Returns the distance of ticks: 1, 2 or 5 times a power of ten, so that at most `max_ticks` cover the range.
local function step_of(range, max_ticks)
  local step = 10 ^ math.floor(math.log10(range / max_ticks))
  for _, times in ipairs { 1, 2, 5, 10 } do
    if step * times * max_ticks >= range then return step * times end
  end
end

--- Returns the area to draw: the columns and rows with values, merged to at most MAX_DRAWN_COLUMNS and MAX_DRAWN_ROWS.
local function extent(self)
  local first, last, columns, max = self.rows, 0, 0, 0
  for i = 1, #self.cells do
    if self.cells[i] > 0 then
      local row = (i - 1) % self.rows
      first, last = math.min(first, row), math.max(last, row)
      columns = math.floor((i - 1) / self.rows) + 1
    end
  end
  if self.linear then first = 0 end
  local wide, high = math.ceil(columns / MAX_DRAWN_COLUMNS), math.ceil((last - first + 1) / MAX_DRAWN_ROWS)
  local area = {
    first = first, wide = wide, high = high,
    columns = math.ceil(columns / wide), rows = math.ceil((last - first + 1) / high), counts = {},
  }
  for i = 1, columns * self.rows do
    if self.cells[i] > 0 then
      local column = math.floor(math.floor((i - 1) / self.rows) / wide)
      local at = column * area.rows + math.floor(((i - 1) % self.rows - first) / high)
      area.counts[at] = (area.counts[at] or 0) + self.cells[i]
      max = math.max(max, area.counts[at])
    end
  end
  area.max = max
  return area
end

--- Returns the color of a count as an index of PALETTE, on a logarithmic scale.
local function shade(count, max)
  if max == 1 then return #PALETTE end
  return 1 + math.floor(math.log(count) / math.log(max) * (#PALETTE - 1) + 0.5)
end

local function time_axis(self, area, put, x_of, bottom)
  local span = area.columns * area.wide * self.width / 1e9
  local step = step_of(span, 10)
  for i = 0, math.floor(span / step + 1e-9) do
    local x = x_of(i * step * 1e9)
    put('<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>', x, x, TOP, bottom)
    put('<text class="mid" x="%.1f" y="%d">%.15g s</text>\n', x, bottom + 18, i * step)
  end
end

local function value_axis(self, area, put, y_of, bottom)
  local function tick(value)
    local y = y_of(value)
    if y < TOP - 1 or y > bottom + 1 then return end
    put('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>', LEFT, WIDTH - RIGHT, y, y)
    put('<text class="end" x="%d" y="%.1f">%s</text>\n', LEFT - 8, y + 4, svg.escape(value_text(value, self.unit)))
  end
  local top = low_of(self, area.first + area.rows * area.high)
  if self.linear then
    local step = step_of(top, 8)
    for i = 0, math.floor(top / step) do tick(i * step) end
    return
  end
  local low = math.max(low_of(self, area.first), 1)
  local factors = top / low > 1e4 and { 1 } or top / low > 30 and { 1, 3 } or { 1, 2, 3, 5, 7 }
  for power = math.floor(math.log10(low)), math.ceil(math.log10(top)) do
    for _, factor in ipairs(factors) do tick(factor * 10 ^ power) end
  end
end

local function legend(area, put, y)
  put('<text class="end" x="%d" y="%d">1</text>', LEFT + 14, y + 11)
  for i = 1, #PALETTE do
    put('<rect class="c%d" x="%d" y="%d" width="16" height="14"/>', i, LEFT + 4 + i * 16, y)
  end
  put('<text x="%d" y="%d">%s in one cell</text>\n', LEFT + 28 + #PALETTE * 16, y + 11, units.number(area.max))
end

--- Returns the picture as parts of an <svg> element.
---@return string[]
---@package
function Heatmap:svg()
  local parts, area = {}, extent(self)
  local function put(format, ...) parts[#parts + 1] = format:format(...) end
  local plot_height = math.max(area.rows * 6, 280)
  local bottom = TOP + plot_height
  local cell_width, cell_height = (WIDTH - LEFT - RIGHT) / area.columns, plot_height / area.rows
  local column_ns = area.wide * self.width
  local function x_of(ns) return LEFT + ns / column_ns * cell_width end
  local function y_of(value) return bottom - (row_of(self, value) - area.first) / area.high * cell_height end

  put('<svg class="heat" version="1.1" xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
    .. 'viewBox="0 0 %d %d">\n', WIDTH, bottom + BOTTOM, WIDTH, bottom + BOTTOM)
  local colors, dark = {}, {}
  for i, color in ipairs(PALETTE) do
    colors[i] = ('.c%d { fill: #%s; }'):format(i, color)
    -- The two darkest ones are hardly seen there.
    dark[i] = ('.c%d { fill: #%s; }'):format(i, PALETTE[math.floor((#PALETTE - 2) - (i - 1) * 9 / 11 + 0.5)])
  end
  parts[#parts + 1] = svg.style(('%s%s\n@media (prefers-color-scheme: dark) { %s }\n'):format(svg.file 'heatmap.css',
    table.concat(colors), table.concat(dark)))
  put('<rect class="back" width="100%%" height="100%%"/>\n')
  put('<text class="title mid" x="%d" y="28">%s</text>\n', WIDTH / 2, svg.escape(self.title))
  put('<text class="mid" x="%d" y="46">%s measurements</text>\n', WIDTH / 2, units.number(self.total))
  time_axis(self, area, put, x_of, bottom)
  value_axis(self, area, put, y_of, bottom)
  put('<g id="cells">\n')
  for column = 0, area.columns - 1 do
    for row = 0, area.rows - 1 do
      local count = area.counts[column * area.rows + row]
      if count then
        local low = low_of(self, area.first + row * area.high)
        local high = low_of(self, area.first + (row + 1) * area.high)
        put('<rect class="c%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>\n',
          shade(count, area.max), LEFT + column * cell_width, bottom - (row + 1) * cell_height,
          cell_width, cell_height, svg.escape(('%.6g to %.6g s, %s to %s: %d'):format(column * column_ns / 1e9,
          (column + 1) * column_ns / 1e9, value_text(low, self.unit), value_text(high, self.unit), count)))
      end
    end
  end
  put('</g>\n')
  legend(area, put, bottom + 34)
  put('<text class="details end" x="%d" y="%d"> </text>\n', WIDTH - RIGHT, bottom + 45)
  parts[#parts + 1] = svg.script(svg.file 'heatmap.js')
  put('</svg>\n')
  return parts
end

--- Writes the picture, or closes the .lat file. Without a value there is neither.
---@param out? Output what says where the values or the picture are
function Heatmap:write(out)
  if not self.file and (self.total or 0) == 0 then
    return out and out:warn(('The heat map has no values: %s is not written'):format(self.path))
  end
  if not self.draws then
    local ok, message = self.file:close()
    if not ok then error(('cannot write %s: %s'):format(self.path, message), 0) end
    out:warn(('To draw the heat map, run: %s heatmap %s FILE.svg'):format(invocation.name(), self.path))
  else
    svg.write(self.path, self.title, self:svg())
    if out then out:warn(('The heat map is in %s'):format(self.path)) end
  end
end

return heatmap
