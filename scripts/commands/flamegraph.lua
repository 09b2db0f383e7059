-- SPDX-License-Identifier: GPL-2.0-only
--- Draws folded stacks: those of --flame-graph, of perf-prof, or of the stackcollapse programs; and recordings.
local flamegraph = require 'lib.flamegraph'
local flametree = require 'lib.flamegraph_tree'
local picture = require 'lib.svg'

return {
  summary = 'Draw a flame graph from folded stacks or a recording',
  description = [[
A line of folded stacks is the frames, roots first, joined by ';', and behind a blank how often they were
seen. With two numbers in each line (difffolded.pl) or with --diff the graph is as wide as the new stacks
are, and its colours say what has changed.]],
  examples = {
    { 'profscript flamegraph cpu.folded cpu.svg', 'a picture for a browser' },
    { 'grep "15:46:33" cpu.folded | profscript flamegraph - slice.svg', 'one interval of a run with -i' },
    { 'profscript flamegraph --diff before.folded after.folded diff.html', 'what has changed' },
    { 'profscript flamegraph --diff old.data new.data diff.svg', 'between two recordings' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = flamegraph.looks {
    unit = { type = 'string', default = 'samples', help = 'what is counted' },
  },
  positional = {
    { name = 'stacks', help = 'file of folded stacks (- is stdin), or a recording' },
    { name = 'picture', help = 'FILE.svg or FILE.html' },
  },

  start = function(opt)
    if not picture.kind(opt.picture) then error(("'%s' ends neither in .svg nor in .html"):format(opt.picture), 0) end
    local tree = flametree.new()
    if opt.diff then flamegraph.read(opt.diff, tree, 'base', opt.reverse) end
    local had_two = flamegraph.read(opt.stacks, tree, 'value', opt.reverse)
    if tree.value == 0 then error(('%s: there is nothing to draw'):format(opt.stacks), 0) end
    flamegraph.draw(opt.picture, tree, {
      title = opt.title or opt.stacks:match '[^/]*$',
      unit = opt.unit,
      inverted = opt.inverted,
      reversed = opt.reverse,
      difference = opt.diff ~= nil or had_two,
    })
  end,
}
