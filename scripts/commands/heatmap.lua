-- SPDX-License-Identifier: GPL-2.0-only
--- Draws what a profiler's --heatmap FILE has written.
local heatmap = require 'lib.heatmap'
local picture = require 'lib.svg'

return {
  summary = 'Draw a latency heat map from the figures in a .lat file',
  description = [[
The file has a line "TIME VALUE" for each measurement, both in ns; the picture has time from left to
right, latency from bottom to top, and a colour for how many there were.]],
  examples = {
    { 'profscript heatmap wakeup.lat wakeup.svg', 'a picture for a browser, with logarithmic latencies' },
    { 'profscript heatmap --linear wakeup.lat wakeup.html', 'a page' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = {
    linear = { type = 'flag', help = 'equal distances for equal latencies' },
    unit = { type = 'string', default = 'ns', help = 'of the values; other units than ns are printed as given' },
    title = { type = 'string', help = 'title of the picture (the file without)' },
  },
  positional = {
    { name = 'figures', help = 'file of figures, - is stdin' },
    { name = 'picture', help = 'FILE.svg or FILE.html' },
  },

  start = function(opt)
    if not picture.kind(opt.picture) then error(("'%s' ends neither in .svg nor in .html"):format(opt.picture), 0) end
    local file, message = io.stdin, nil
    if opt.figures ~= '-' then file, message = io.open(opt.figures) end
    if not file then error(message, 0) end
    local map = heatmap.new {
      file = opt.picture,
      title = opt.title or opt.figures:match '[^/]*$',
      unit = opt.unit,
      scale = opt.linear and 'linear' or 'log',
    }
    local line_number = 0
    for line in file:lines() do
      line_number = line_number + 1
      local time, value = line:match '^%s*(%d+)%s+(%d+)%s*$'
      if not time then
        error(("%s:%d: '%s' is no line 'TIME VALUE'"):format(opt.figures, line_number, line:sub(1, 80)), 0)
      end
      map:add(tonumber(time), tonumber(value))
    end
    if line_number == 0 then error(('%s: there is nothing to draw'):format(opt.figures), 0) end
    map:write()
  end,
}
