-- SPDX-License-Identifier: GPL-2.0-only
--- Lost events: compares how many events the kernel counted with how many arrived. Longer than most profilers
--- because CPUs, threads and recordings are counted in three ways.
local array = require 'lib.array'
local events = require 'lib.events'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local threads = require 'lib.threads'

local MAX_ROWS = 4096
local RESTART = 1000 -- a count that drops by more than this has restarted, because its CPU was offline

--- Returns all events of the command line, in order.
local function list_events(groups, is_recorded)
  local list = events.list(groups)
  for _, event in ipairs(is_recorded and {} or list) do
    if event.freq then
      return nil, ('%s is sampled at a frequency: its missing samples cannot be counted'):format(event.name)
    elseif event.name:find '^sched:sched_stat_' then
      return nil, ('%s counts ns, not occurrences'):format(event.name)
    end
  end
  return list
end

--- Returns selectors of the same events, to count them.
local function counted_events(list, common_filter)
  local selectors = {}
  for i, event in ipairs(list) do
    local filter, cpus = event.filter or common_filter, event.attrs.cpus
    filter = filter and ('"%s"'):format(filter:gsub('["\\]', '\\%0')) or ''
    selectors[i] = ('%s/%s/%s'):format(event.name, filter, cpus and ('cpus=%s/'):format(cpus) or '')
  end
  return selectors
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

  metrics = { lost = { lost = 'counter', silent = 'counter', late = 'counter' } },

  start = function(opt, out, session)
    local list, problem = list_events(opt.event, opt.input)
    if not list then return nil, problem end
    if #list == 0 then return nil, 'no events; select some with -e, such as -e sched:sched_switch' end
    local is_thread, perins = session.per_thread, opt.perins
    local samples_count = not opt.input and not is_thread and not opt.cgroups and not session.is_source
    local counts = not opt.input and not samples_count and session.count(counted_events(list, opt.filter)) or nil
    local size = (MAX_ROWS + 1) * #list
    local delivered, counted, latest = array.new(size), array.new(size), array.new(size)
    local keys, lost, last, late, left = intern.new(1, MAX_ROWS), 0, 0, 0, opt.exit_n or math.huge
    -- For each thread, the traced thread that it descends from, with which it is counted.
    local root = perins and is_thread and array.new(threads.MAX)

    local handlers = {}
    for i, event in ipairs(list) do
      local own_count = samples_count and session.own_count(event)
      handlers[event] = function(ev)
        local id
        if is_thread then id = root and keys.id(root[math.max(ev._tid, 0)]) or 0 else id = keys.id(ev._cpu) end
        local at = id * #list + i - 1
        delivered[at] = delivered[at] + 1
        if own_count then
          local value, before = own_count(ev), latest[at]
          if value > before or value < before - RESTART then
            counted[at] = counted[at] + (before > 0 and value > before and value - before or 1)
            latest[at] = value
          end
        end
        if ev._time < last then late = late + 1 end
        last, left = ev._time, left - 1
        if left == 0 then session.stop() end
      end
    end
    if root then
      function handlers.targets(tids)
        for _, tid in ipairs(tids) do root[tid] = tid end
      end
      function handlers.fork(ev) root[ev._tid] = root[math.max(ev._parent, 0)] end
    end
    handlers.lost = function(gap) lost = lost + gap.lost end

    tables.record('lost', { 'lost', 'silent', 'late' })
    local spec = tables.new('event-lost', {
      { name = 'instance', title = is_thread and '[THREAD]' or '[CPU]', align = 'left', show = perins },
      { name = 'event', align = 'left' },
      { name = 'counted', metric = 'counter', width = 12, align = 'right', show = not opt.input },
      { name = 'delivered', metric = 'counter', width = 12, align = 'right' },
      { name = 'missing', metric = 'counter', width = 12, align = 'right', alert = true, show = not opt.input },
    })
    --- Returns the CPUs or threads of the table, each with its row of the counts or the id of its key.
    local function instances()
      local found = {}
      if counts then
        for row = 1, counts:rows() do found[row] = { name = counts:id(row), row = row } end
      else
        for id = 0, keys:count() - 1 do found[id + 1] = { name = keys:part(id, 1), id = id } end
        table.sort(found, function(a, b) return a.name < b.name end)
      end
      return found
    end
    local function rows_of()
      local rows, sums = {}, {}
      for i, event in ipairs(list) do
        sums[i] = { event = event.alias, counted = 0, delivered = 0, missing = 0 }
        rows[i] = not perins and sums[i] or nil
      end
      for _, one in ipairs(instances()) do
        for i, event in ipairs(list) do
          local id = one.id or (root or not is_thread) and keys.id(one.name) or 0
          local at = id * #list + i - 1
          local n = delivered[at]
          if counts then n = counts:get(one.row, i) elseif samples_count then n = counted[at] end
          if n then
            local row = sums[i]
            if perins then
              row = { instance = one.name, event = event.alias, counted = 0, delivered = 0 }
              rows[#rows + 1] = row
            end
            row.counted, row.delivered = row.counted + n, row.delivered + delivered[at]
            delivered[at], counted[at] = 0, 0
          end
        end
      end
      return rows
    end
    local function report()
      local rows, missing = rows_of(), 0
      for _, row in ipairs(rows) do
        row.missing = row.counted - row.delivered
        missing = missing + row.missing
      end
      out:table(spec, rows)
      local silent = math.max(0, missing - lost)
      local line = ('lost %d, late %d\n'):format(lost, late)
      if not opt.input then
        local others = lost > missing and (samples_count and ' (%d of them after the last event, or other records)'
          or ' (%d of them other records)'):format(lost - missing) or ''
        line = ('lost %d%s, unexplained %d, late %d\n'):format(lost, others, silent, late)
      end
      out:record('lost', { lost = lost, silent = silent, late = late }, { 'lost', 'silent', 'late' }, line)
      lost, late = 0, 0
    end
    handlers.interval, handlers.stop = report, report
    return handlers
  end,
}
