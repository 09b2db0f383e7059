-- SPDX-License-Identifier: GPL-2.0-only
--- The time that tasks are off their CPU, by the stack at which they left it, and by who woke them.
local report = require 'lib.engines.off_cpu.report'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'
local waits = require 'lib.engines.off_cpu.waits'

return {
  summary = 'Time off CPU by stack, with who woke the task',
  description = [[
Measures from when a task leaves its CPU until it runs again, and adds up the times
by task, state, stack and waker. The states are those of task-state: S and D are
sleeps, RD is the wait of a task that could run.

A task is woken by another one, or in an interrupt: then a device or a timer woke it,
such as [disk] or [timer], and not the task that happened to run. --depth 2 also
shows who woke the waker. --depth 0 leaves out the wakers: a BPF program then adds up
the times if the kernel can run it. A wait that still lasts at the end of the run is
counted, as one that nobody has ended yet, and one that had begun before the run is
counted from its start, without a stack.

A recording needs sched:sched_switch and sched:sched_waking, or sched:sched_wakeup,
which another CPU may have written than that of the waker. --flame-graph draws the
stacks of the waits, and on top of them those of the wakers, upside down.]],
  examples = {
    { 'profscript offcpu -p 1 --than 1ms', 'long waits of a process' },
    { 'profscript offcpu --depth 0 -i 1s', 'only sums by task, state and stack' },
    { 'profscript offcpu --depth 3 -- make', 'what a command waits for, and who lets it wait' },
    { 'profscript offcpu -p 1 --flame-graph off.svg', 'flame graph of waits and their wakers' },
  },
  everywhere = true,
  unsupported = { 'event' },
  optional = {
    ['sched:sched_wakeup'] = 'who woke a task is not known',
    ['sched:sched_wakeup_new'] = 'threads that begin during the run are missing',
  },
  options = report.options {
    than = { type = 'duration', help = 'only waits longer than T' },
    depth = { type = 'integer', default = 1, min = 0, max = 8, help = 'number of wakers, each of the one before' },
    user_callchain = {},
    kernel_callchain = {},
    mmap_pages = { default = 512 },
  },

  start = function(opt, out, session)
    local ours = threads.new(session, opt, true)
    local tracked = waits.new { session = session, ours = ours, depth = opt.depth }
    local sums = report.new(opt, out, session, tracked)
    local than = opt.than or -1
    local function add(wait)
      if wait.ns > than then sums:add(wait) end
    end
    local switch = session.event { 'sched:sched_switch', stack = true }
    local function switched(ev)
      if tracked.switch(ev) then add(tracked.last) end
    end
    local waking = session.supports 'sched:sched_waking' and 'sched:sched_waking' or 'sched:sched_wakeup'
    local woken = opt.depth > 0 and session.event { waking, stack = true }
    local in_kernel = tracked.add_up { event = switch, handler = switched, opt = opt, sums = sums,
      needs_events = woken and 'who woke a task is asked for (--depth 0: only sums)' or nil }
    local handlers = {
      [switch] = switched,
      lost = tracked.lost,
      interval = function() sums:print() end,
      stop = function(time)
        if not in_kernel.taken() then tracked.open(time, add) end
        sums:finish()
        unreported.warn(tracked.missed, out, 'offcpu', 'waits that they begin or end are missing')
      end,
    }
    if woken then handlers[woken] = tracked.waking end
    return ours.follow(handlers, in_kernel.begin)
  end,
}
