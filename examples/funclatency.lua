-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the time of a function's calls as a histogram.
---
---   profscript examples/funclatency.lua --enter uprobe:malloc@libc.so.6 --leave uretprobe:malloc@libc.so.6
local aggregate = require 'lib.aggregate'
local join = require 'lib.join'

return {
  summary = "Print the time of a function's calls",
  options = {
    enter = { type = 'event', default = 'uprobe:fopen@libc.so.6', help = 'probe at its entry' },
    leave = { type = 'event', default = 'uretprobe:fopen@libc.so.6', help = 'probe at its return' },
  },
  start = function(opt, out)
    local calls = join.new()
    local times = aggregate.new('hist', {}, { name = 'time', unit = 'ns' })
    local function report() times:print(out) times:clear() end
    return {
      lost = calls.lost,
      [opt.enter] = function(ev) calls:start(ev._tid, ev._time) end,
      [opt.leave] = function(ev)
        local ns = calls:finish(ev._tid, ev._time)
        if ns then times:add(ns) end
      end,
      interval = report,
      stop = report,
    }
  end,
}
