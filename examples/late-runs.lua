-- SPDX-License-Identifier: GPL-2.0-only
--- Prints what ran on a CPU while a task waited for it for too long. Until that happens, BPF programs time the waits
--- and keep the switches, and nobody reads an event.
---
---   profscript examples/late-runs.lua --than 20ms
return {
  summary = 'Print what ran while a task waited for a CPU for long',
  options = {
    than = { type = 'string', default = '20ms', help = 'longest time to wait' },
    before = { type = 'string', default = '50ms', help = 'how far to look back' },
  },
  start = function(opt, out, session)
    local recorder = session.recorder { events = 'sched:sched_switch', keep = '16M' }
    return {
      [('rundelay/--than %s/'):format(opt.than)] = function(ev)
        local cpu = ev._cpu
        local function here(one) return one._cpu == cpu end
        if recorder:dump { at = ev._time, before = opt.before, where = here } then
          out:row { 'comm', ev.next_comm, 'tid', ev.next_pid, 'cpu', cpu }
        end
      end,
    }
  end,
}
