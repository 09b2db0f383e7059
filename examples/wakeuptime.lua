-- SPDX-License-Identifier: GPL-2.0-only
--- Adds up how long tasks wait to be woken, by who wakes them.
---
---   profscript examples/wakeuptime.lua --duration 5
local aggregate = require 'lib.aggregate'
local join = require 'lib.join'

return {
  summary = 'Add up the time that tasks wait, by who wakes them',
  everywhere = true, -- a wakeup is an event of the waker
  options = { top = { type = 'integer', default = 10, help = 'rows to print' } },
  start = function(opt, out)
    local waiting = join.new()
    local waits = aggregate.new('quantiles', { 'waker', 'woken' }, { name = 'waits', unit = 'ns' })
    local function report() waits:print(out, { limit = opt.top }) waits:clear() end
    return {
      lost = waiting.lost,
      ['sched:sched_switch/prev_state & 0xff/'] = function(ev) waiting:start(ev.prev_pid, ev._time) end,
      ['sched:sched_wakeup'] = function(ev)
        local ns = waiting:finish(ev.pid, ev._time)
        if ns then waits:add(ns, ev._comm, ev.comm) end
      end,
      interval = report,
      stop = report,
    }
  end,
}
