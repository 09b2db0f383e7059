-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the time of software interrupts, by kind.
---
---   profscript examples/softirqs.lua -i 1s
local aggregate = require 'lib.aggregate'
local join = require 'lib.join'

local KINDS = { [0] = 'HI', 'TIMER', 'NET_TX', 'NET_RX', 'BLOCK', 'IRQ_POLL', 'TASKLET', 'SCHED', 'HRTIMER', 'RCU' }

return {
  summary = 'Print the time of software interrupts',
  start = function(_, out)
    local running = join.new()
    local times = aggregate.new('quantiles', { 'softirq' }, { name = 'softirqs', unit = 'ns' })
    local function report() times:print(out) times:clear() end
    return {
      lost = running.lost,
      ['irq:softirq_entry'] = function(ev) running:start(ev._cpu, ev._time) end,
      ['irq:softirq_exit'] = function(ev)
        local ns = running:finish(ev._cpu, ev._time)
        if ns then times:add(ns, KINDS[ev.vec] or 'other') end
      end,
      interval = report,
      stop = report,
    }
  end,
}
