-- SPDX-License-Identifier: GPL-2.0-only
--- Lost events: compares how many events the kernel counted with how many arrived.
local arrivals = require 'lib.engines.arrivals'
local events = require 'lib.events'
local tables = require 'lib.table'

local LOSSES = { 'lost', 'silent', 'late' }

--- Returns the line below the table.
local function summary(found, missing, lost, late)
  if not found.is_counted then return ('lost %d, late %d\n'):format(lost, late) end
  local others = ''
  if lost > missing then
    others = (found.is_late_counted and ' (%d of them other records)'
      or ' (%d of them after the last event, or other records)'):format(lost - missing)
  end
  return ('lost %d%s, unexplained %d, late %d\n'):format(lost, others, math.max(0, missing - lost), late)
end

return {
  summary = 'Check whether events are lost or late',
  description = [[
Compares how often each event happened with how often it was delivered:

  counted      events that the kernel counted
  delivered    events that profscript read
  missing      counted, but not delivered
  lost         missing because a ring buffer was full, as reported by the kernel
  unexplained  missing, but not reported as lost; some kernels hide the events of
               certain tasks from tracers
  late         delivered after a later event

On CPUs, each event carries the count so far, so events lost after the last
delivered one are only in the last line. Events of threads (-p, -t or a
workload) are counted a second time, by counters that may start and stop
slightly earlier or later; their ring buffers also hold names and exits of
tasks, which can be lost but are not events. A recording has no counts, only
delivered and lost events.

  $ profscript event-lost -q -m 1 -e raw_syscalls:sys_enter -- find /usr -name x.y
  2026-11-22 11:29:44.126967
  event          counted    delivered      missing
  --------- ------------ ------------ ------------
  sys_enter       263095         3526       259569
  lost 259569, unexplained 0, late 0]],
  examples = {
    { 'profscript event-lost -e sched:sched_wakeup,sched:sched_switch -m 64 --duration 10', 'with small ring buffers' },
    { 'profscript event-lost -e raw_syscalls:sys_enter -- ls -R /usr', 'events of a command' },
  },
  options = {
    perins = { type = 'flag', help = 'print rows per CPU or thread' },
    exit_n = { help = 'stop soon after this many events' },
  },

  compares = true,
  metrics = { lost = { lost = 'counter', silent = 'counter', late = 'counter' } },

  start = function(opt, out, session)
    local list = events.list(opt.event)
    if #list == 0 then return nil, 'no events; select some with -e, such as -e sched:sched_switch' end
    local found, problem = arrivals.new(list, opt, session)
    if not found then return nil, problem end

    local lost, last, late, left, handlers = 0, 0, 0, opt.exit_n or math.huge, {}
    for i, event in ipairs(list) do
      local count = found:counter(i)
      handlers[event] = function(ev)
        count(ev)
        if ev._time < last then late = late + 1 end
        last, left = ev._time, left - 1
        if left == 0 then session.stop() end
      end
    end
    found:follow(handlers)
    handlers.lost = function(gap) lost = lost + gap.lost end

    tables.record('lost', LOSSES)
    local spec = tables.new('event-lost', {
      { name = 'instance', title = found.title, align = 'left', show = opt.perins },
      { name = 'event', align = 'left' },
      { name = 'counted', metric = 'counter', width = 12, align = 'right', show = found.is_counted },
      { name = 'delivered', metric = 'counter', width = 12, align = 'right' },
      { name = 'missing', metric = 'counter', width = 12, align = 'right', alert = true, show = found.is_counted },
    })
    local function report()
      local rows, missing = found:take(), 0
      for _, row in ipairs(rows) do
        row.missing = row.counted - row.delivered
        missing = missing + row.missing
      end
      out:table(spec, rows)
      out:record('lost', { lost = lost, silent = math.max(0, missing - lost), late = late }, LOSSES,
        summary(found, missing, lost, late))
      lost, late = 0, 0
    end
    handlers.interval, handlers.stop = report, report
    return handlers
  end,
}
