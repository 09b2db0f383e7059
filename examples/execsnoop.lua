-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the programs that are started, with the time since their thread was created.
---
---   profscript examples/execsnoop.lua
local join = require 'lib.join'

return {
  summary = 'Print the programs that are started',
  start = function(_, out)
    local created = join.new { expires = '1h' }
    return {
      lost = created.lost,
      ['sched:sched_process_fork'] = function(ev) created:start(ev.child_pid, ev._time, ev.parent_comm) end,
      ['sched:sched_process_exec'] = function(ev)
        local ns, parent = created:finish(ev.pid, ev._time)
        out:row { 'pid', ev.pid, 'parent', parent or '?', 'fork_us', ns and ns / 1000, 'file', ev.filename }
      end,
    }
  end,
}
