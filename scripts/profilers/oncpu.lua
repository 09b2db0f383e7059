-- SPDX-License-Identifier: GPL-2.0-only
--- On-CPU time of the tasks of each CPU, or of threads on each CPU. Longer than most profilers because these are two
--- tables, each with and without details.
local array = require 'lib.array'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local task_filter = require 'lib.task_filter'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local MAX_CPU = threads.MAX_CPUS
local MAX_ROWS = 65536

local function ms(ns) return ('%.1fms'):format(ns / 1e6) end

--- Sorts rows by CPU and time; rows of threads by time.
local function sort(cells, by_thread)
  table.sort(cells, function(a, b)
    if a.cpu ~= b.cpu and (a.ns == b.ns or not by_thread) then return a.cpu < b.cpu end
    if a.ns ~= b.ns then return a.ns > b.ns end
    if a.tid ~= b.tid then return a.tid < b.tid end
    return a.comm < b.comm
  end)
end

--- Returns a table with a line for each CPU with its tasks, or for each thread with its CPUs.
local function text_of(cells, by_thread, opt, name_of)
  local groups, order = {}, {}
  for _, cell in ipairs(cells) do
    local at = by_thread and cell.tid or cell.cpu
    if not groups[at] then
      groups[at] = { key = at, sum = 0, runs = 0 }
      order[#order + 1] = groups[at]
    end
    local group = groups[at]
    group.sum, group.runs = group.sum + cell.ns, group.runs + cell.runs
    group[#group + 1] = cell
  end
  table.sort(order, function(a, b) return a.key < b.key end)
  local rows = {}
  for i, group in ipairs(order) do
    local parts = {}
    for j, cell in ipairs(group) do
      local label = by_thread and tostring(cell.cpu) or opt.only_comm and cell.comm or cell.comm .. ':' .. cell.tid
      local detail = opt.detail and ('/%d/%s'):format(cell.runs, ms(cell.longest)) or ''
      parts[j] = ('%s(%s%s)'):format(label, ms(cell.ns), detail)
    end
    rows[i] = {
      key = by_thread and group.key or ('%03d'):format(group.key),
      comm = by_thread and name_of(group.key),
      sum = opt.detail and ('%.0fms/%d'):format(group.sum / 1e6, group.runs) or ('%.0f'):format(group.sum / 1e6),
      parts = table.concat(parts, ' '),
    }
  end
  local list = by_thread and 'CPUS' or opt.only_comm and 'COMM' or 'COMM:TID'
  local unit = opt.detail and '(ms/sws/max_ms)' or '(ms)'
  return tables.render(tables.new('oncpu', {
    { name = 'key', title = by_thread and 'THREAD' or 'CPU', align = by_thread and 'right' or 'left' },
    { name = 'comm', title = 'COMM', width = 16, align = 'left', show = by_thread },
    { name = 'sum', title = opt.detail and 'SUM(ms/sws)' or 'SUM(ms)', align = 'left' },
    { name = 'parts', title = list .. unit, align = 'left', rule = #list + #unit },
  }), rows)
end

return {
  summary = 'On-CPU time of tasks per CPU, or of threads on each CPU',
  description = [[
Without -p, -t or a workload, prints a line for each CPU: the time that tasks
ran on it, and which tasks. With them, prints a line for each thread: the CPUs
that it ran on. New threads and children are followed. A task that is running
when an interval ends is counted up to that time. JSON and CSV have a row for
each task and CPU. A BPF program adds up the times if the kernel can run it; with
--filter or -N each switch is read as an event.

  $ profscript oncpu -- sh -c 'sleep 0.1; gzip -c /usr/bin/perf >/dev/null'
  2026-11-22 11:29:09.771127
  THREAD COMM             SUM(ms) CPUS(ms)
  ------ ---------------- ------- --------
   14245 sh               2       0(1.6ms)
   14248 sleep            1       0(1.1ms)
   14289 gzip             319     0(319.0ms)]],
  examples = {
    { 'profscript oncpu -C 0-1', 'tasks running on these CPUs, every second' },
    { 'profscript oncpu -p 1 --detail', 'CPUs of the threads of a process, with the number of runs and the longest' },
    { 'profscript oncpu --prio 0-99', 'real-time tasks only' },
  },
  everywhere = true,
  unsupported = { 'event' },
  options = {
    interval = { default = '1s' },
    detail = { type = 'flag', help = 'also print the number of runs and the longest run' },
    only_comm = { type = 'flag', help = 'merge tasks of the same name' },
    filter = { own = true, help = 'only switches that match this filter' },
    prio = { type = 'string', needs = {}, argument = 'LIST', help = 'only tasks of these priorities; real-time: 0-99' },
  },

  start = function(opt, out, session)
    local prio
    if opt.prio then
      local problem
      prio, problem = task_filter.priorities(opt.prio)
      if not prio then return nil, problem end
      if opt.filter then return nil, '--filter and --prio are mutually exclusive' end
    end
    local by_thread, only_comm = session.named_threads, opt.only_comm
    if by_thread and opt.only_comm then return nil, '--only-comm does not work with -p, -t or a workload' end

    local flat = tables.new('oncpu', {
      { name = 'cpu' },
      { name = 'tid', show = not only_comm },
      { name = 'comm' },
      { name = 'runtime_ns', metric = 'counter' },
      { name = 'runs', metric = 'counter' },
      { name = 'longest_ns' },
    })
    local function print_cells(cells)
      sort(cells, by_thread)
      for _, cell in ipairs(cells) do cell.runtime_ns, cell.longest_ns = cell.ns, cell.longest end
      out:table(flat, cells, nil, function() return text_of(cells, by_thread, opt, session.task_name) end)
    end
    local ours = threads.new(session, opt, not (opt.filter or opt.prio))
    -- By CPU: the running thread (tid + 1; 0: unknown), the time it started to run, the end of the last loss.
    local current, since, known_from = array.new(MAX_CPU), array.new(MAX_CPU), array.new(MAX_CPU)
    local names = {} -- of the running threads by CPU, for --only-comm
    local keys = intern.new(2, MAX_ROWS)
    local sums, runs, longest = array.new(MAX_ROWS + 1), array.new(MAX_ROWS + 1), array.new(MAX_ROWS + 1)
    local has_prio = prio and prio.has
    -- With --filter, the thread that runs between two matching switches is unknown.
    local sees_all = not opt.filter
    local from_start = sees_all and not opt.input
    local unknown = 0 -- ns of CPUs from a loss to the next switch
    local missed, leaves, enters, forget = unreported.watch()
    local checks_switches = sees_all and not prio -- a priority may change while a task runs

    local function credit(cpu, tid, comm, ns, complete)
      if not ours.has(tid) then return end
      local id
      if only_comm then id = keys.id(cpu, comm) else id = keys.id(cpu, tid) end
      sums[id] = sums[id] + ns
      runs[id] = runs[id] + complete
      if ns > longest[id] then longest[id] = ns end
    end

    local function switch(ev)
      local cpu, pid = ev._cpu, ev.prev_pid
      if cpu < 0 or cpu >= MAX_CPU then return end
      if checks_switches then
        if ours.has(pid) then leaves(pid, ev._time, ev._cpu) end
        if ours.has(ev.next_pid) then enters(ev.next_pid, ev._time, ev._cpu) end
      end
      local from = since[cpu]
      if from < known_from[cpu] then
        if from > 0 then unknown = unknown + ev._time - from end
        current[cpu] = 0
      elseif from == 0 and from_start then
        current[cpu] = pid + 1 -- the first switch since the start
      end
      if current[cpu] == pid + 1 and (not has_prio or has_prio(ev.prev_prio)) then
        credit(cpu, pid, only_comm and ev.prev_comm, ev._time - from, 1)
      end
      current[cpu], since[cpu] = ev.next_pid + 1, ev._time
      if has_prio and not has_prio(ev.next_prio) then current[cpu] = 0 end
      if only_comm then names[cpu] = ev.next_comm end
    end

    --- Counts the running threads up to this time.
    local function count_running(time)
      if not sees_all then return end
      for cpu = 0, MAX_CPU - 1 do
        if current[cpu] > 1 and since[cpu] >= known_from[cpu] and time > since[cpu] then
          credit(cpu, current[cpu] - 1, names[cpu], time - since[cpu], 0)
          since[cpu] = time
        end
      end
    end

    local function report(time)
      count_running(time)
      local cells = {}
      for id = 0, keys.max do
        if id == keys:count() then break end
        local cpu, who = keys:part(id, 1), keys:part(id, 2)
        cells[#cells + 1] = {
          cpu = cpu,
          tid = not only_comm and who or nil,
          comm = only_comm and who or session.task_name(who),
          ns = sums[id], runs = runs[id], longest = longest[id],
        }
        sums[id], runs[id], longest[id] = 0, 0, 0
      end
      if keys:overflow() > 0 then
        out:warn(('oncpu: %.0f ms are not shown: more than %d tasks'):format(sums[keys.max] / 1e6, MAX_ROWS))
        sums[keys.max] = 0
      end
      keys:clear()
      print_cells(cells)
    end

    local filter = prio and prio.text 'prev_prio' .. ' || ' .. prio.text 'next_prio' or opt.filter
    local event = session.event { 'sched:sched_switch' }
    filter = task_filter.all(filter, ours.filter('prev_pid', 'next_pid'))
    if filter then event:set { filter = filter } end
    session.cpu_times { event = event, handler = switch, keys = keys, sums = sums, runs = runs, longest = longest,
      missed = missed, only_comm = only_comm, prio = has_prio, named = by_thread, duration = opt.duration }
    return ours.follow {
      [event] = switch,
      lost = function(gap)
        for cpu = gap.cpu or 0, gap.cpu or MAX_CPU - 1 do
          if cpu < MAX_CPU then known_from[cpu] = math.max(known_from[cpu], gap.to) end
        end
        forget(gap)
      end,
      interval = report,
      stop = function(time)
        report(time)
        if unknown > 0 and sees_all then
          out:warn(('oncpu: %.0f ms of CPU time are unknown due to lost events'):format(unknown / 1e6))
        end
        unreported.warn(missed, out, 'oncpu', 'the time before them is not counted')
      end,
    }
  end,
}
