-- SPDX-License-Identifier: GPL-2.0-only
--- Prints how long runnable tasks wait for a CPU, as a histogram of all tasks or of each command.
---
---   profscript examples/runqlat.lua -i 1s
---   profscript examples/runqlat.lua --by comm --duration 5
local aggregate = require 'lib.aggregate'

local PREEMPTED = 256 -- prev_state of a preempted task since Linux 4.14

return {
  summary = 'Print run-queue latency as a histogram',
  options = {
    by = { type = 'enum', values = { 'all', 'comm' }, default = 'all', help = 'one histogram, or one per command' },
  },

  start = function(opt, out)
    local since = {} -- [pid] = time when the task became runnable, while it waits
    local waits = aggregate.new('hist', { 'comm' }, { name = 'wait (ns)' })

    local function runnable(ev) since[ev.pid] = ev._time end

    local function print_and_clear()
      waits:print(out)
      waits:clear()
    end

    return {
      ['sched:sched_wakeup'] = runnable,
      ['sched:sched_wakeup_new'] = runnable,
      ['sched:sched_switch'] = function(ev)
        if ev.prev_state == 0 or ev.prev_state == PREEMPTED then since[ev.prev_pid] = ev._time end
        local from = since[ev.next_pid]
        if from and ev.next_pid ~= 0 then
          since[ev.next_pid] = nil
          waits:add(ev._time - from, opt.by == 'comm' and ev.next_comm or 'all')
        end
      end,
      interval = print_and_clear,
      stop = print_and_clear,
      lost = function() since = {} end, -- with lost events a wakeup could pair with the wrong switch
    }
  end,
}
