-- SPDX-License-Identifier: GPL-2.0-only
--- A prompt for questions about events while they flow.
local repl = require 'lib.engines.repl'

return {
  summary = 'Ask about events at a prompt, in the language of exec',
  description = [[
Each line is Lua code that runs for every event, as in profscript exec:
count(ev.next_comm), or sched_wakeup: hist(ev.prio) for one of the events. It
runs until it is removed; `show` prints what it has collected. ?sched_switch and
?sched_switch.prev_state explain an event or a field, with values that have been
seen. Tab completes, and `help` lists the rest.

+sched:sched_wakeup adds an event. All events are then opened again, and the
programs begin anew.

Of a recording, the events can be asked for again and again: `run` runs the
programs over them.

Lines can also come from a pipe. At its end, the run goes on until --duration,
-N or Ctrl-C; a recording is read once, unless there was a `run`.]],
  examples = {
    { 'profscript repl -e sched:sched_switch,sched:sched_wakeup', 'ask about scheduling' },
    { "echo 'count(ev.next_comm)' | profscript repl -e sched:sched_switch --duration 1", 'take the lines from a pipe' },
    { "echo 'count(ev._comm)' | profscript repl --input perf.data", 'run a program over a recording' },
  },
  unsupported = { 'watch', 'push', 'export', 'query' },

  start = function(opt, out, session)
    local prompt = repl.new(session, out, opt.event, { has_stacks = opt.call_graph, globals = _G })
    local handlers = prompt:handlers()
    handlers[1] = prompt
    handlers.interval = function() prompt:report() end
    handlers.stop = function() prompt:finish() end
    return handlers
  end,
}
