-- SPDX-License-Identifier: GPL-2.0-only
--- Draws a file that --heatmap FILE has written.
local heatmap = require 'lib.heatmap'
local svg = require 'lib.svg'

return {
  summary = 'Draw a heat map of the latencies in a .lat file',
  description = [[
The file has a line "TIME VALUE" for each latency, both in ns. The picture shows time from left to right,
latency from bottom to top, and the number of latencies as colors.]],
  examples = {
    { 'profscript heatmap wakeup.lat wakeup.svg', 'draw a picture for the browser, on a logarithmic scale' },
    { 'profscript heatmap --linear wakeup.lat wakeup.html', 'draw a page, on a linear scale' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = {
    linear = { type = 'flag', help = 'use a linear scale for the latencies' },
    unit = { type = 'string', default = 'ns', help = 'unit of the values; only ns are printed as us, ms or s' },
    title = { type = 'string', help = 'title of the picture (default: the file)' },
  },
  positional = {
    { name = 'values', argument = 'FILE.lat', help = 'file of latencies (-: stdin)' },
    { name = 'picture', help = 'FILE.svg or FILE.html' },
  },

  start = function(opt)
    if not svg.kind(opt.picture) then error(("'%s' must end in .svg or .html"):format(opt.picture), 0) end
    local file, message = io.stdin, nil
    if opt.values ~= '-' then file, message = io.open(opt.values) end
    if not file then error(message, 0) end
    local _, problem = file:read(0)
    if problem then error(('%s: %s'):format(opt.values, problem), 0) end
    local map = heatmap.new {
      file = opt.picture,
      title = opt.title or opt.values:match '[^/]*$',
      unit = opt.unit,
      scale = opt.linear and 'linear' or 'log',
    }
    local line_number = 0
    for line in file:lines() do
      line_number = line_number + 1
      local time, value = line:match '^%s*(%d+)%s+(%d+)%s*$'
      if not time then
        error(("%s:%d: expected 'TIME VALUE', not '%s'"):format(opt.values, line_number, line:sub(1, 80)), 0)
      end
      map:add(tonumber(time), tonumber(value))
    end
    if line_number == 0 then error(('%s: no latencies to draw'):format(opt.values), 0) end
    map:write()
  end,
}
