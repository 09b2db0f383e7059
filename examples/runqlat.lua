-- SPDX-License-Identifier: GPL-2.0-only
--- How long runnable tasks wait for a CPU, as one histogram per command or for all.
---   profscript examples/runqlat.lua -i 1s
---   profscript examples/runqlat.lua --by comm --duration 5
local aggregate = require 'lib.aggregate'

local PREEMPTED = 256 -- prev_state of a task that was switched out while it could go on (since 4.14)

return {
  summary = 'Run-queue latency histogram',
  options = {
    by = { type = 'enum', values = { 'all', 'comm' }, default = 'all', help = 'one for all, or one per command' },
  },

  start = function(opt, out)
    local since = {} -- pid -> when it became runnable; an entry exists only while the task waits
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
      lost = function() since = {} end, -- after a hole a wakeup could pair with the wrong switch
    }
  end,
}
