-- SPDX-License-Identifier: GPL-2.0-only
--- Prints how long runnable tasks wait for a CPU, as a histogram of all tasks or of each command.
---
---   profscript examples/runqlat.lua -i 1s
---   profscript examples/runqlat.lua --by comm --duration 5
local aggregate = require 'lib.aggregate'
local join = require 'lib.join'

return {
  summary = 'Print run-queue latency as a histogram',
  options = { by = { type = 'enum', values = { 'all', 'comm' }, default = 'all', help = 'one, or one per command' } },
  start = function(opt, out)
    local waiting, waits = join.new(), aggregate.new('hist', { 'comm' }, { name = 'wait', unit = 'ns' })
    local function runnable(ev) waiting:start(ev.pid, ev._time) end
    local function report() waits:print(out) waits:clear() end
    return {
      lost = waiting.lost,
      ['sched:sched_wakeup,sched:sched_wakeup_new'] = runnable,
      ['sched:sched_switch'] = function(ev)
        if ev.prev_state % 256 == 0 then waiting:start(ev.prev_pid, ev._time) end -- 256: preempted
        local ns = waiting:finish(ev.next_pid, ev._time)
        if ns and ev.next_pid ~= 0 then waits:add(ns, opt.by == 'comm' and ev.next_comm or 'all') end
      end,
      interval = report,
      stop = report,
    }
  end,
}
