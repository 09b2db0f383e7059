-- SPDX-License-Identifier: GPL-2.0-only
--- Counts wakeups per task.
---
---   profscript examples/wakeups.lua -i 1s         prints a table every second
---   profscript examples/wakeups.lua --top 5       prints one table at the end (Ctrl-C)
local counter = require 'lib.counter'

return {
  summary = 'Count wakeups per task',
  options = {
    top = { type = 'integer', default = 20, help = 'rows to print' },
  },

  start = function(opt, out)
    local count = counter.new { 'pid', 'comm' }

    local function print_and_clear()
      count:print(out, { limit = opt.top })
      count:clear()
    end

    return {
      ['sched:sched_wakeup'] = function(ev)
        count:add(1, ev.pid, ev.comm)
      end,
      interval = print_and_clear,
      stop = print_and_clear,
    }
  end,
}
