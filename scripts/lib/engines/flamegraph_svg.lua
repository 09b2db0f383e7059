-- SPDX-License-Identifier: GPL-2.0-only
--- Drawing of flame graphs: a tree of frames as an SVG, or as a page with a table of the hottest functions. Tooltips
--- show the value of each frame. With JavaScript a click zooms, Ctrl-F searches, and the graph fits the window.
local bit = require 'bit'
local flametree = require 'lib.flamegraph_tree'
local svg = require 'lib.svg'
local units = require 'lib.units'

local flamegraph_svg = {}

local WIDTH, PAD, TOP, BOTTOM, ROW = 1200, 10, 58, 34, 16
local CHAR = 6.9 -- width of a 12 px monospace character in pixels
local MIN_WIDTH = 0.1 -- pixels; narrower frames are not drawn
local TABLE_ROWS = 100

--- Returns a number from 0 to 1 that depends on the name only, so that a function has the same color in all graphs.
local function hash(name)
  local h = 5381
  for i = 1, #name do h = bit.band(h * 33 + name:byte(i), 0xffffff) end
  return (h % 1009) / 1008
end

local function rgb(r, g, b) return ('rgb(%d,%d,%d)'):format(r, g, b) end

--- The usual hues of flame graphs: user red, C++ yellow, kernel orange, JIT green, inlined aqua.
local HUES = {
  u = function(v) return rgb(205 + 50 * v, 60 + 80 * v, 55 + 60 * v) end,
  cpp = function(v) return rgb(185 + 55 * v, 175 + 50 * v, 50 + 30 * v) end,
  k = function(v) return rgb(215 + 40 * v, 120 + 65 * v, 10 + 30 * v) end,
  j = function(v) return rgb(70 + 50 * v, 180 + 50 * v, 70 + 50 * v) end,
  i = function(v) return rgb(70 + 50 * v, 175 + 50 * v, 180 + 50 * v) end,
  r = function(v) return rgb(196 + 24 * v, 196 + 24 * v, 204 + 24 * v) end,
}

--- Returns the color of a differential graph: red for more than in the base, blue for less.
local function difference_color(delta, max)
  if delta == 0 or max == 0 then return rgb(236, 236, 236) end
  local pale = 90 + 135 * (1 - math.abs(delta) / max)
  return delta > 0 and rgb(255, pale, pale) or rgb(pale, pale, 255)
end

local function max_delta(node)
  local max = math.abs(node.self - node.base_self)
  for _, child in pairs(node.children or {}) do max = math.max(max, max_delta(child)) end
  return max
end

local function depth_of(node, min_value)
  local max = 0
  for _, child in pairs(node.children or {}) do
    if child.value >= min_value then max = math.max(max, depth_of(child, min_value)) end
  end
  return max + 1
end

--- Returns the tooltip of a frame: name, value, share of the total and its change.
local function title_of(node, tree, settings)
  local text = ('%s (%s %s, %.2f%%'):format(node.name, units.number(node.value), settings.unit,
    node.value * 100 / tree.value)
  if settings.difference then
    local change = (node.value - node.base) * 100 / tree.value
    text = ('%s; %+.2f%%'):format(text, math.abs(change) < 0.005 and 0 or change)
  end
  return text .. ')'
end

--- Returns the name, shortened to a width in pixels; '' if not even three characters fit.
local function fitting(name, pixels)
  local room = math.floor((pixels - 6) / CHAR)
  if room < 3 then return '' end
  return #name <= room and name or name:sub(1, room - 2):gsub('[\128-\255]+$', '') .. '..'
end

--- Returns the picture as parts of an <svg> element.
---@param tree FlameNode
---@param settings FlameSettings
---@return string[]
function flamegraph_svg.svg(tree, settings)
  local parts = {}
  local function put(format, ...) parts[#parts + 1] = format:format(...) end
  local inner = WIDTH - 2 * PAD
  local min_value = tree.value * MIN_WIDTH / inner
  local depth = depth_of(tree, min_value)
  local height = TOP + depth * ROW + BOTTOM
  local max = settings.difference and max_delta(tree) or 0

  put('<svg version="1.1" xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">\n', WIDTH,
    height, WIDTH, height)
  parts[#parts + 1] = svg.style(svg.file 'flamegraph.css')
  put('<rect id="back" width="100%%" height="100%%"/>\n')
  put('<text class="title" x="50%%" y="26">%s</text>\n', svg.escape(settings.title))
  put('<text id="unzoom" class="button hidden" x="%d" y="26">Reset Zoom</text>\n', PAD)
  put('<text id="search" class="button end hidden" x="100%%" dx="-%d" y="26">Search</text>\n', PAD + 28)
  put('<text id="ignorecase" class="button end hidden" x="100%%" dx="-%d" y="26">ic</text>\n', PAD)
  put('<text id="details" x="%d" y="%d"> </text>\n', PAD, height - 12)
  put('<text id="matched" class="end" x="100%%" dx="-%d" y="%d"> </text>\n', PAD, height - 12)
  put('<svg id="frames" x="%d" width="%d" data-total="%s">\n', PAD, inner, units.number(tree.value))

  local function draw(node, start, level)
    local y = settings.inverted and TOP + level * ROW or height - BOTTOM - (level + 1) * ROW
    local share, name = node.value / tree.value, node.name
    local hue = node.kind == 'u' and name:find('::', 1, true) and 'cpp' or node.kind
    local color = settings.difference and difference_color(node.self - node.base_self, max)
      or (HUES[hue] or HUES.u)(hash(name))
    put('<g data-s="%s" data-n="%s"><title>%s</title>'
      .. '<rect x="%.4f%%" y="%d" width="%.4f%%" height="%d" fill="%s" rx="1"/>'
      .. '<text x="%.4f%%" dx="3" y="%d">%s</text></g>\n', units.number(start), units.number(node.value),
      svg.escape(title_of(node, tree, settings)), start * 100 / tree.value, y, share * 100, ROW - 1, color,
      start * 100 / tree.value, y + 12, svg.escape(fitting(name, share * inner)))
    for _, child in ipairs(flametree.children(node)) do
      if child.value >= min_value and child.value > 0 then draw(child, start, level + 1) end
      start = start + child.value
    end
  end
  draw(tree, 0, 0)
  parts[#parts + 1] = '</svg>\n'
  parts[#parts + 1] = svg.script(svg.file 'flamegraph.js')
  parts[#parts + 1] = '</svg>\n'
  return parts
end

--- Returns the table below the graph on a page.
local function function_table(tree, reversed)
  local parts = { '<table><tr><th>self</th><th>total</th><th>function</th></tr>\n' }
  for i, entry in ipairs(flametree.functions(tree, reversed)) do
    if i > TABLE_ROWS or entry.self == 0 then break end
    parts[#parts + 1] = ('<tr><td>%.2f%%</td><td>%.2f%%</td><td>%s</td></tr>\n'):format(entry.self * 100 / tree.value,
      entry.total * 100 / tree.value, svg.escape(entry.name))
  end
  parts[#parts + 1] = '</table>\n'
  return parts
end

--- Draws a tree to FILE.svg or FILE.html.
---@param path string
---@param tree FlameNode
---@param settings FlameSettings
function flamegraph_svg.write(path, tree, settings)
  svg.write(path, settings.title, flamegraph_svg.svg(tree, settings), function_table(tree, settings.reversed))
end

return flamegraph_svg
