-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the processes that end, with their age, and their status or the signal that ended them.
---
---   profscript examples/exitsnoop.lua
---   profscript examples/exitsnoop.lua --failed
local names = require 'lib.names'

return {
  summary = 'Print the processes that end',
  options = { failed = { type = 'flag', help = 'only those that failed' } },
  start = function(opt, out, session)
    return { ['tp_btf:sched_process_exit'] = function(ev)
      local code, task = ev.p.exit_code, ev.p
      if task.pid ~= task.tgid or code == 0 and opt.failed then return end
      local signal = code % 128
      out:row { 'pid', task.tgid, 'comm', task.comm, 'parent', task.real_parent.comm,
        'age_ms', (session.time_base() + ev._time - task.start_time) / 1e6,
        'end', signal > 0 and names.signal(signal) or 'status ' .. math.floor(code / 256) }
    end }
  end,
}
