-- SPDX-License-Identifier: GPL-2.0-only
--- Prints how long tasks run before they leave their CPU, as a histogram for each command.
---
---   profscript examples/cpudist.lua --duration 5
local aggregate = require 'lib.aggregate'
local join = require 'lib.join'

return {
  summary = 'Print how long tasks run at a time',
  everywhere = true, -- a switch to a task is an event of the one before it
  options = { top = { type = 'integer', default = 5, help = 'commands to print' } },
  start = function(opt, out, session)
    local running = join.new()
    local times = aggregate.new('hist', { 'comm' }, { name = 'on CPU', unit = 'ns' })
    local function report() times:print(out, { limit = opt.top }) times:clear() end
    return running:follow(session, {
      lost = running.lost,
      ['sched:sched_switch'] = function(ev)
        local ns = running:finish(ev.prev_pid, ev._time)
        if ns then times:add(ns, ev.prev_comm) end
        if ev.next_pid ~= 0 then running:start(ev.next_pid, ev._time) end
      end,
      interval = report,
      stop = report,
    })
  end,
}
