-- SPDX-License-Identifier: GPL-2.0-only
--- On-CPU time of the tasks of each CPU, or of threads on each CPU.
local cpu_time = require 'lib.engines.cpu_time'
local tables = require 'lib.table'
local task_filter = require 'lib.task_filter'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

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

--- Returns a table with a line for each CPU with its tasks, or for each thread with its CPUs, in columns of a terminal.
local function text_of(cells, by_thread, opt, name_of, width)
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
  }), rows, nil, width)
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
    local ours = threads.new(session, opt, not (opt.filter or opt.prio))
    local times = cpu_time.new(opt, session, ours, prio)
    local by_thread, only_comm = times.by_thread, opt.only_comm
    if by_thread and only_comm then return nil, '--only-comm does not work with -p, -t or a workload' end

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
      out:table(flat, cells, nil, function(width) return text_of(cells, by_thread, opt, session.task_name, width) end)
    end
    local handlers = times.handlers
    local function report(time)
      local cells, hidden = times.take(time)
      if hidden then
        out:warn(('oncpu: %.0f ms are not shown: more than %d tasks'):format(hidden / 1e6, cpu_time.MAX_ROWS))
      end
      print_cells(cells)
    end
    handlers.interval = report
    function handlers.stop(time)
      report(time)
      local unknown = times.unknown()
      if unknown > 0 then
        out:warn(('oncpu: %.0f ms of CPU time are unknown due to lost events'):format(unknown / 1e6))
      end
      unreported.warn(times.missed, out, 'oncpu', 'the time before them is not counted')
    end
    return ours.follow(handlers)
  end,
}
