-- SPDX-License-Identifier: GPL-2.0-only
--- Draws folded stacks (from --flame-graph, perf-prof or the stackcollapse programs) or a recording.
local flamegraph = require 'lib.flamegraph'
local flametree = require 'lib.flamegraph_tree'
local svg = require 'lib.svg'

return {
  summary = 'Draw a flame graph from folded stacks or a recording',
  description = [[
A line of folded stacks has the frames from the root on, joined by ';', a blank and the number of samples.
With two numbers per line (difffolded.pl) or with --diff, widths are those of the new stacks and colors
show the change.]],
  examples = {
    { 'profscript flamegraph cpu.folded cpu.svg', 'draw a picture for the browser' },
    { 'grep "15:46:33" cpu.folded | profscript flamegraph - slice.svg', 'draw one interval of a run with -i' },
    { 'profscript flamegraph --diff before.folded after.folded diff.html', 'show what has changed' },
    { 'perf record -q -g -o - -- make | profscript flamegraph - make.svg', 'draw a recording as it comes' },
    { 'profscript flamegraph --diff old.data new.data diff.svg', 'compare two recordings' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = flamegraph.looks {
    unit = { type = 'string', default = 'samples', help = 'unit of the counts' },
  },
  positional = {
    { name = 'stacks', help = 'file of folded stacks, or recording (-: stdin)' },
    { name = 'picture', help = 'FILE.svg or FILE.html' },
  },

  start = function(opt, out)
    if not svg.kind(opt.picture) then error(("'%s' must end in .svg or .html"):format(opt.picture), 0) end
    if opt.diff == '-' and opt.stacks == '-' then
      return nil, 'stdin (-) cannot be both the stacks and those of --diff: give the file of one of them'
    end
    local tree, shows = flametree.new(), { name = 'flamegraph', out = out, is_quiet = opt.quiet }
    if opt.diff then flamegraph.read(opt.diff, tree, 'base', opt.reverse, shows) end
    local had_two, why = flamegraph.read(opt.stacks, tree, 'value', opt.reverse, shows)
    if tree.value == 0 then error(('%s: no stacks to draw%s'):format(opt.stacks, why and ': ' .. why or ''), 0) end
    flamegraph.draw(opt.picture, tree, {
      title = opt.title or opt.stacks:match '[^/]*$',
      unit = opt.unit,
      inverted = opt.inverted,
      reversed = opt.reverse,
      difference = opt.diff ~= nil or had_two,
    })
  end,
}
