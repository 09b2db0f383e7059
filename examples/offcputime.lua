-- SPDX-License-Identifier: GPL-2.0-only
--- Adds up how long tasks are off their CPU, by the stack at which they left it.
---
---   profscript examples/offcputime.lua --duration 5
local join = require 'lib.join'
local stacks = require 'lib.stacks'

return {
  summary = 'Add up the time off CPU by stack',
  everywhere = true, -- a switch to a task is an event of the one before it
  options = { top = { type = 'integer', default = 3, help = 'stacks to print' } },
  start = function(opt, out, session)
    local switch = session.event { 'sched:sched_switch', stack = true }
    local off, waits = join.new(), stacks.new(session, { 'ns' })
    return {
      lost = off.lost,
      [switch] = function(ev)
        if ev.prev_pid ~= 0 then off:start(ev.prev_pid, ev._time, ev._stack, ev.prev_comm) end
        local ns, stack, comm = off:finish(ev.next_pid, ev._time)
        if ns then waits:add(stack, comm, ns) end
      end,
      stop = function() waits:print(out, { limit = opt.top }) end,
    }
  end,
}
