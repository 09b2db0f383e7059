-- SPDX-License-Identifier: GPL-2.0-only
--- Whether events get lost: what the kernel counted against what arrived. It is longer than most profilers
--- because CPUs, threads and recordings tell it in three ways.
local array = require 'lib.array'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local threads = require 'lib.threads'

local MAX_ROWS = 4096
local RESTART = 1000 -- so much less than before: its CPU was offline, and it counts anew

--- All events of the command line, in its order; nil and what is wrong with them.
local function to_be_judged(groups, is_recorded)
  local list = {}
  for _, group in ipairs(groups) do
    for _, event in ipairs(group) do
      if event.freq and not is_recorded then
        return nil, ('%s is sampled by time: it cannot be counted against'):format(event.name)
      elseif event.name:find '^sched:sched_stat_' and not is_recorded then
        return nil, ('%s counts ns, not how often it happens'):format(event.name)
      end
      list[#list + 1] = event
    end
  end
  return list
end

--- The same events, to be counted only.
local function twins_of(list, common_filter)
  local twins = {}
  for i, event in ipairs(list) do
    local filter, cpus = event.filter or common_filter, event.attrs.cpus
    filter = filter and ('"%s"'):format(filter:gsub('["\\]', '\\%0')) or ''
    twins[i] = ('%s/%s/%s'):format(event.name, filter, cpus and ('cpus=%s/'):format(cpus) or '')
  end
  return twins
end

return {
  summary = 'Whether events are lost or late: what was counted, delivered, lost',
  description = [[
It is also called event-care, as in perf-prof. Each event is counted where it is recorded; `missing` is what
was counted and not delivered. The last line says how much of it the kernel had no room for. The rest is
without a word: some kernels do not deliver what certain tasks do. `late` came after a younger one.
On CPUs each event tells how many there were before it: what is lost behind the last one is in the last line
only. Events of threads (-p, -t, a workload) are counted a second time, which may begin and end a little
earlier or later; their rings also tell of names and ends of tasks, which are no events but can be lost. In a
recording nothing is counted: there is what was delivered, and what it says was lost.

  $ profscript event-lost -q -m 1 -e raw_syscalls:sys_enter -- find /usr -name x.y
  2026-11-22 11:29:44.126967
  event          counted    delivered      missing
  --------- ------------ ------------ ------------
  sys_enter       263095         3526       259569
  lost 259569, missing without a word 0, late 0]],
  examples = {
    { 'profscript event-lost -e sched:sched_wakeup,sched:sched_switch -m 64 --duration 10', 'with small rings' },
    { 'profscript event-lost -e raw_syscalls:sys_enter -- ls -R /usr', 'of a command' },
  },
  options = {
    perins = { type = 'flag', help = 'rows for each CPU or thread' },
    exit_n = { help = 'stop soon after this many events' },
  },

  start = function(opt, out, session)
    local list, problem = to_be_judged(opt.event, opt.input)
    if not list then return nil, problem end
    local is_thread, perins = session.per_thread, opt.perins
    local tells_itself = not opt.input and not is_thread and not opt.cgroups and not session.is_source
    local counts = not opt.input and not tells_itself and session.count(twins_of(list, opt.filter)) or nil
    local size = (MAX_ROWS + 1) * #list
    local delivered, counted, latest = array.new(size), array.new(size), array.new(size)
    local keys, lost, last, late, left = intern.new(1, MAX_ROWS), 0, 0, 0, opt.exit_n or math.huge
    -- What a thread has started is counted with it: by thread, the named one that it comes from.
    local root = perins and is_thread and array.new(threads.MAX)

    local handlers = {}
    for i, event in ipairs(list) do
      local own_count = tells_itself and session.own_count(event)
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

    local spec = tables.new('event-lost', {
      { name = 'instance', title = is_thread and '[THREAD]' or '[CPU]', align = 'left', show = perins },
      { name = 'event', align = 'left' },
      { name = 'counted', width = 12, align = 'right', show = not opt.input },
      { name = 'delivered', width = 12, align = 'right' },
      { name = 'missing', width = 12, align = 'right', alert = true, show = not opt.input },
    })
    --- The CPUs or threads that rows are about, and which of the counts' rows they are.
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
          if counts then n = counts:get(one.row, i) elseif tells_itself then n = counted[at] end
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
      if out.format ~= 'text' then
        out:record('lost', { lost = lost, silent = silent, late = late }, { 'lost', 'silent', 'late' })
      elseif opt.input then
        out:printf('lost %d, late %d\n', lost, late)
      else
        local others = lost > missing and (tells_itself and ' (%d of them behind the last one, or no events)'
          or ' (%d of them no events)'):format(lost - missing) or ''
        out:printf('lost %d%s, missing without a word %d, late %d\n', lost, others, silent, late)
      end
      lost, late = 0, 0
    end
    handlers.interval, handlers.stop = report, report
    return handlers
  end,
}
