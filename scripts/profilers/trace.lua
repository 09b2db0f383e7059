-- SPDX-License-Identifier: GPL-2.0-only
--- Prints events, one line each.
local events = require 'lib.events'
local flamegraph = require 'lib.flamegraph'

return {
  summary = 'Print events, one line each, in time order',
  examples = {
    { 'profscript trace -e sched:sched_wakeup,sched:sched_switch -N 100', 'the next 100 wakeups and switches' },
    { "profscript trace -e 'raw_syscalls:sys_enter/id==59/'", 'who starts programs' },
    { "profscript trace -e 'sched:*' --overwrite -m 256", 'flight recorder: Ctrl-C prints the newest events' },
    { 'profscript trace -e sched:sched_switch --input perf.data', 'events of a recording' },
    { [[profscript trace -e 'sched:sched_wakeup//exec=printf("prio %d\n", prio)/']], 'an extra line for each event' },
  },

  options = flamegraph.options {
    overwrite = { type = 'flag',
      help = 'ring buffers keep the newest events; print them at the end, or with -i after each interval' },
  },

  start = function(opt, out, session)
    session.want { prints_events = true, only_threads = true }
    local flame = flamegraph.new(opt, session, out, { title = 'trace', unit = 'events' })
    local handlers = {}
    for _, event in ipairs(events.list(opt.event)) do
      handlers[event] = function(ev)
        out:print_event(ev, flame ~= nil)
        if flame then flame:add(ev, 1) end
      end
    end
    return flamegraph.follow(flame, handlers)
  end,
}
