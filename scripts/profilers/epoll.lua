-- SPDX-License-Identifier: GPL-2.0-only
--- Event loops: how long threads wait in epoll_wait, what wakes them, and how long they handle what they got.
local epoll_waits = require 'lib.engines.net.epoll_waits'
local report = require 'lib.engines.net.epoll_report'
local threads = require 'lib.threads'

return {
  summary = 'Event loops: waits in epoll_wait, what ends them, and how long events are handled',
  description = [[
Prints a row for each process, epoll descriptor, and what ended its waits: the task
that woke the thread, or in an interrupt [network], [timer] or [disk]; [ready] if
events were there at once, or the kernel did not report the wakeup; [timeout] and
[signal] if there were none.

  waited      time in epoll_wait
  latency     from the wakeup until epoll_wait returns, on average and at most
  handling    from then until the thread waits again, on average and at most

A recording needs the events that --dry-run prints, with stacks (perf record -g) for
the names of interrupts.]],
  examples = {
    { 'profscript epoll -p 1', 'the event loops of a process' },
    { 'profscript epoll --than 10ms', 'what keeps an event loop busy for long' },
    { 'profscript epoll -i 1s', 'all event loops, every second' },
  },
  everywhere = true, -- others wake a thread
  unsupported = { 'event' },
  options = {
    than = { type = 'duration', help = 'also print each time that events are handled for longer than T' },
    top = { type = 'integer', default = 20, min = 1, help = 'rows to print' },
    mmap_pages = { default = 512 },
  },

  start = function(opt, out, session)
    local ours = threads.new(session, opt, true)
    local waits = epoll_waits.new(session, ours)
    local sums = report.new(opt, out, session, waits)
    local handlers = waits:handlers()
    handlers.interval = function() sums:print() end
    handlers.stop = handlers.interval
    return ours.follow(handlers)
  end,
}
