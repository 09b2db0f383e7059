-- SPDX-License-Identifier: GPL-2.0-only
--- What `sched` prints: long waits with who ran meanwhile, runs, and the tables of tasks and CPUs.
local cpu_runs = require 'lib.engines.sched.cpu_runs'
local rows = require 'lib.engines.rows'
local sched_switch = require 'bindings.expr.sched_switch'
local tables = require 'lib.table'
local units = require 'lib.units'
local unreported = require 'lib.unreported'

local report = {}

local IDLE, HOLE = 'idle', '(not known)'

--- Returns a time as perf prints it: in microseconds, of which it has begun the last.
local function seconds(time) return ('%.6f'):format(math.floor(time * 1e6 + 1e-3) / 1e6) end

--- Returns a cell that only the first row of a wait has.
local function once(show)
  return function(row) return row.is_first and show(row) or '' end
end

local function new_specs(by_thread)
  local waits = tables.new('sched-wait', {
    { name = 'task', width = 16, align = 'left', text = once(function(row) return row.task end) },
    { name = 'tid', width = 7, align = 'right', text = once(function(row) return tostring(row.tid) end) },
    { name = 'wait_ns', title = 'wait', width = 9, align = 'right', metric = 'none',
      text = once(function(row) return units.time(row.wait_ns) end) },
    { name = 'cpu', width = 4, align = 'right', metric = 'label' }, { name = 'behind', width = 16 },
    { name = 'behind_tid', width = 10, align = 'right', metric = 'label' },
    { name = 'ran_ns', title = 'ran', width = 9, align = 'right', unit = 'ns' },
    { name = 'runs', width = 5, align = 'right' },
  }, { is_ordered = true })
  local of_tasks = tables.new('sched-task', {
    { name = 'task', width = 16, metric = 'label' },
    { name = 'tid', width = 7, align = 'right', show = by_thread },
    { name = 'runtime_ns', title = 'runtime', width = 9, align = 'right', unit = 'ns', metric = 'counter' },
    { name = 'waits', width = 7, align = 'right', metric = 'counter' },
    { name = 'wait_ns', title = 'wait', width = 9, align = 'right', unit = 'ns', metric = 'counter' },
    { name = 'avg_ns', title = 'avg', width = 9, align = 'right', unit = 'ns' },
    { name = 'max_ns', title = 'max', width = 9, align = 'right', unit = 'ns' },
    { name = 'max_end', title = 'max ends at', width = 15, align = 'right', metric = 'none',
      text = function(row) return row.max_end and seconds(row.max_end) or '' end },
  })
  local of_cpus = tables.new('sched-cpu', {
    { name = 'cpu', width = 4, align = 'right', metric = 'label' },
    { name = 'busy_percent', title = 'busy%', width = 6, align = 'right', format = '%.1f' },
    { name = 'waiting', width = 8, align = 'right', format = '%.3f' },
    { name = 'most', width = 5, align = 'right' },
    { name = 'unclaimed_percent', title = 'unclaimed%', width = 10, align = 'right', format = '%.1f' },
    { name = 'hole_percent', title = 'hole%', width = 6, align = 'right', format = '%.1f' },
  }, { stamp = false })
  return waits, of_tasks, of_cpus
end

---@class SchedReport
local Report = {}
Report.__index = Report

--- Creates the report.
---@param opt table of sched
---@param out Output
---@param session Session
---@return SchedReport
function report.new(opt, out, session)
  local self = setmetatable({ opt = opt, out = out, session = session }, Report)
  self.waits, self.of_tasks, self.of_cpus = new_specs(opt.perins)
  return self
end

--- Follows the waits of tasks.
---@param followed SchedTasks
function Report:of(followed) self.followed = followed end

--- Prints a wait, with a row for each task that ran meanwhile.
function Report:wait(tid, _, from, to, behind)
  local list, name = {}, self.followed.name
  for i, one in ipairs(behind) do
    list[i] = { is_first = i == 1, task = name(tid), tid = tid, wait_ns = to - from, cpu = one.cpu,
      behind = one.tid == 0 and IDLE or one.tid == cpu_runs.HOLE and HOLE or name(one.tid), behind_tid = one.tid,
      ran_ns = one.ns, runs = one.runs }
  end
  self.out:table(self.waits, list, to)
end

local function ms(ns) return ns and ns / 1e6 or '-' end

--- Prints a run.
---@param run SchedRun
function Report:run(run)
  self.out:row({ 'end', seconds(tonumber(self.session.printed_time(run.time))), 'cpu', run.cpu, 'task', run.name,
    'tid', run.tid, 'off_ms', ms(run.off), 'state', sched_switch.STATES[run.state] or '-',
    'wait_ms', ms(run.wait), 'run_ms', ms(run.run) }, 'sched-run')
end

local function add(to, task)
  to.runtime_ns, to.waits, to.wait_ns = to.runtime_ns + task.runtime, to.waits + task.waits, to.wait_ns + task.waited
  if task.longest >= to.max_ns then to.max_ns, to.longest_end = task.longest, task.longest_end end
end

--- Prints the sums since the last report.
---@param time number
function Report:print(time)
  local list, by_key, printed_time = {}, {}, self.session.printed_time
  self.followed.report(function(task)
    local key = self.opt.perins and task.tid or task.name
    local row = by_key[key]
    if not row then
      row = { task = task.name, tid = task.tid, runtime_ns = 0, waits = 0, wait_ns = 0, max_ns = 0 }
      by_key[key], list[#list + 1] = row, row
    end
    add(row, task)
  end)
  for _, row in ipairs(list) do
    row.avg_ns = row.waits > 0 and row.wait_ns / row.waits or 0
    row.max_end = row.waits > 0 and tonumber(printed_time(row.longest_end)) or nil
  end
  table.sort(list, function(a, b)
    if a.wait_ns ~= b.wait_ns then return a.wait_ns > b.wait_ns end
    return a.tid < b.tid
  end)
  rows.print(self.out, self.of_tasks, list, self.opt.top, time)
  local cpus = {}
  self.followed.cpus:report(time, function(cpu, ns)
    cpus[#cpus + 1] = { cpu = cpu.cpu, busy_percent = 100 * cpu.busy / ns, waiting = cpu.waited / ns, most = cpu.most,
      unclaimed_percent = 100 * cpu.unclaimed / ns, hole_percent = 100 * cpu.hole / ns }
  end)
  self.out:table(self.of_cpus, cpus, time)
end

--- Prints the last report, and says what is missing in it.
function Report:finish(time)
  self:print(time)
  local missed = unreported.new()
  missed.switches = self.followed.cpus.holes
  unreported.warn(missed, self.out, 'sched', 'who ran before them is not known')
end

return report
