-- SPDX-License-Identifier: GPL-2.0-only
--- Who ran on each CPU and for how long; or, for some threads, on which CPUs they ran. It is longer than
--- most profilers because these are two tables, with details or without, of what one event says.
local array = require 'lib.array'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local task_filter = require 'lib.task_filter'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local MAX_CPU = threads.MAX_CPUS
local MAX_ROWS = 65536
local NR_PRIOS = 140 -- all priorities of the kernel are below it

local function ms(ns) return ('%.1fms'):format(ns / 1e6) end

-- Options that are about single switches, so that they must be read one by one.
local NEEDS_EVENTS = {
  'input', 'filter', 'exit_n', 'cgroups', 'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest',
  'exclude_pid', 'irqs_disabled', 'tif_need_resched', 'nr_running_min', 'nr_running_max', 'sched_policy',
  'perfeval_cpus', 'perfeval_pids',
}

local function needs_events(opt, session)
  for _, name in ipairs(NEEDS_EVENTS) do
    if opt[name] then return true end
  end
  return session.named_threads or session.is_source or opt.verbose > 1
end

--- The order of rows: by CPU and time, of threads by time.
local function sort(cells, by_thread)
  table.sort(cells, function(a, b)
    if a.cpu ~= b.cpu and (a.ns == b.ns or not by_thread) then return a.cpu < b.cpu end
    if a.ns ~= b.ns then return a.ns > b.ns end
    if a.tid ~= b.tid then return a.tid < b.tid end
    return a.comm < b.comm
  end)
end

--- The handlers where a BPF program adds up the times (bpf/oncpu.bpf.c).
---@param program Bpf
---@param print_cells fun(cells: table[])
local function sums_handlers(program, opt, out, session, print_cells)
  local maps, writes = { [0] = program:map 'sums_0', program:map 'sums_1' }, 0

  local function report()
    local map = maps[writes]
    writes = 1 - writes
    program:set('map', writes)
    program:run 'settle'
    local cells = {}
    for _, entry in ipairs(map:take()) do
      local row, sum = entry.key, entry.value
      cells[#cells + 1] = {
        cpu = row.cpu, tid = not opt.only_comm and row.tid or nil,
        comm = opt.only_comm and row.comm or session.task_name(row.tid),
        ns = sum.ns, runs = sum.runs, longest = sum.longest,
      }
    end
    print_cells(cells)
    local left_out = program:get 'left_out'
    if left_out > 0 then
      out:warn(('oncpu: %.0f ms of more than %d tasks are left out'):format(left_out / 1e6, MAX_ROWS))
      program:set('left_out', 0)
    end
  end

  return {
    targets = function() program:run 'settle' end, -- the events are about to begin
    interval = report,
    stop = function()
      report()
      local found = unreported.new()
      found.switches = program:get 'unreported'
      unreported.tell(found, out, 'oncpu', 'what ran up to them is left out')
    end,
  }
end

--- Loads the program that adds up the times; nil where this kernel or machine cannot run it.
---@return Bpf?
local function load_program(session, opt, prio, out)
  local numbers = {}
  for priority = 0, NR_PRIOS - 1 do numbers[priority] = prio and prio.has(priority) and 1 or 0 end
  local ok, program = pcall(session.bpf, {
    built_in = 'oncpu',
    constants = { only_comm = opt.only_comm and 1 or 0, has_prio = prio and 1 or 0, prio = numbers },
  })
  if ok then ok, program = pcall(function() program:attach() return program end) end
  if ok then return program end
  if opt.verbose > 0 then out:warn('oncpu: reading each switch, without a BPF program: ' .. tostring(program)) end
end

--- The tasks of each CPU, or the CPUs of each thread: one line of text for each group.
local function print_text(out, cells, by_thread, opt, name_of)
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
      local what = by_thread and tostring(cell.cpu) or opt.only_comm and cell.comm or cell.comm .. ':' .. cell.tid
      local detail = opt.detail and ('/%d/%s'):format(cell.runs, ms(cell.longest)) or ''
      parts[j] = ('%s(%s%s)'):format(what, ms(cell.ns), detail)
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
  out:table(tables.new('oncpu', {
    { name = 'key', title = by_thread and 'THREAD' or 'CPU', align = by_thread and 'right' or 'left' },
    { name = 'comm', title = 'COMM', width = 16, align = 'left', show = by_thread },
    { name = 'sum', title = opt.detail and 'SUM(ms/sws)' or 'SUM(ms)', align = 'left' },
    { name = 'parts', title = list .. unit, align = 'left', rule = #list + #unit },
  }), rows)
end

return {
  summary = 'Who ran on each CPU, or on which CPUs some threads ran',
  description = [[
Without -p, -t or a workload there is a line for each CPU: how long tasks ran on it, and which. With
them there is a line for each thread: on which CPUs it ran. New threads and children are followed.
What runs when an interval ends is counted up to there. JSON and CSV have a row for each task and CPU.
A BPF program adds up the times of CPUs, if the kernel can run it. With --filter or -N, or for threads,
each switch is read.

  $ profscript oncpu -- sh -c 'sleep 0.1; gzip -c /usr/bin/perf >/dev/null'
  2026-11-22 11:29:09.771127
  THREAD COMM             SUM(ms) CPUS(ms)
  ------ ---------------- ------- --------
   14245 sh               2       0(1.6ms)
   14248 sleep            1       0(1.1ms)
   14289 gzip             319     0(319.0ms)]],
  examples = {
    { 'profscript oncpu -C 0-1', 'who runs on these CPUs, every second' },
    { 'profscript oncpu -p 1 --detail', 'where the threads of a process run, how often, and how long at once' },
    { 'profscript oncpu --prio 0-99', 'tasks of real-time priority only' },
  },
  everywhere = true,
  unsupported = { 'event' },
  options = {
    interval = { default = '1s' },
    detail = { type = 'flag', help = 'and how many runs there were, and the longest' },
    only_comm = { type = 'flag', help = 'tasks of one name are one' },
    filter = { own = true, help = 'only the switches this filter matches' },
    prio = { type = 'string', argument = 'LIST', help = 'only tasks of these priorities; 0-99 is real-time' },
  },

  start = function(opt, out, session)
    local prio
    if opt.prio then
      local problem
      prio, problem = task_filter.priorities(opt.prio)
      if not prio then return nil, problem end
      if opt.filter then return nil, 'either --filter or --prio can be given' end
    end
    local by_thread, only_comm = session.named_threads, opt.only_comm
    if by_thread and opt.only_comm then return nil, '--only-comm is for the tasks of CPUs, not the CPUs of threads' end

    local flat = tables.new('oncpu', {
      { name = 'cpu' },
      { name = 'tid', show = not only_comm },
      { name = 'comm' },
      { name = 'runtime_ns' },
      { name = 'runs' },
      { name = 'longest_ns' },
    })
    local function print_cells(cells)
      sort(cells, by_thread)
      if out.format == 'text' then
        print_text(out, cells, by_thread, opt, session.task_name)
      else
        for _, cell in ipairs(cells) do cell.runtime_ns, cell.longest_ns = cell.ns, cell.longest end
        out:table(flat, cells)
      end
    end
    local program = not needs_events(opt, session) and load_program(session, opt, prio, out)
    if program then return sums_handlers(program, opt, out, session, print_cells) end

    local ours = threads.new(session, opt, not (opt.filter or opt.prio))
    -- Of each CPU: who runs (tid + 1; 0: not known) and since when; the end of its last hole.
    local current, since, known_from = array.new(MAX_CPU), array.new(MAX_CPU), array.new(MAX_CPU)
    local names = {} -- by CPU, of who runs, with --only-comm
    local keys = intern.new(2, MAX_ROWS)
    local sums, runs, longest = array.new(MAX_ROWS + 1), array.new(MAX_ROWS + 1), array.new(MAX_ROWS + 1)
    local has_prio = prio and prio.has
    -- With a filter of the user's nobody knows who runs between two switches that it lets through.
    local sees_all = not opt.filter
    local from_start = sees_all and not opt.input
    local unknown = 0 -- ns of CPUs behind holes, until the next switch tells who runs
    local missed, leaves, enters, forget = unreported.watch()
    local judges = sees_all and not prio -- a priority may change while a task runs

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
      if judges then
        if ours.has(pid) then leaves(pid, ev._time) end
        if ours.has(ev.next_pid) then enters(ev.next_pid, ev._time) end
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

    --- Counts what runs up to this time.
    local function settle(time)
      if not sees_all then return end
      for cpu = 0, MAX_CPU - 1 do
        if current[cpu] > 1 and since[cpu] >= known_from[cpu] and time > since[cpu] then
          credit(cpu, current[cpu] - 1, names[cpu], time - since[cpu], 0)
          since[cpu] = time
        end
      end
    end

    local function report(time)
      settle(time)
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
        out:warn(('oncpu: %.0f ms of more than %d tasks are left out'):format(sums[keys.max] / 1e6, MAX_ROWS))
        sums[keys.max] = 0
      end
      keys:clear()
      print_cells(cells)
    end

    local filter = prio and prio.text 'prev_prio' .. ' || ' .. prio.text 'next_prio' or opt.filter
    return ours.follow {
      [task_filter.select('sched:sched_switch', filter, ours.filter('prev_pid', 'next_pid'))] = switch,
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
          out:warn(('oncpu: for %.0f ms of CPU time lost events hide who ran'):format(unknown / 1e6))
        end
        unreported.tell(missed, out, 'oncpu', 'what ran up to them is left out')
      end,
    }
  end,
}
