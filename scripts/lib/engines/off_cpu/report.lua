-- SPDX-License-Identifier: GPL-2.0-only
--- The report of offcpu: waits by task, state, stack and waker, and a flame graph of both stacks.
local failure = require 'bindings.base.failure'
local flamegraph = require 'lib.flamegraph'
local flametree = require 'lib.flamegraph_tree'
local sched_switch = require 'bindings.expr.sched_switch'
local svg = require 'lib.svg'
local tables = require 'lib.table'
local text = require 'bindings.base.text'
local units = require 'lib.units'
local wait_totals = require 'lib.engines.off_cpu.wait_totals'
local waits = require 'lib.engines.off_cpu.waits'

local report = {}

local STATES = 16 -- more than there are
local BEFORE = '[off CPU when the run began]' -- in place of a stack
local BETWEEN = '--' -- between the stacks of a wait and its waker, as other tools draw them

--- Adds the options of the report to those of the profiler.
---@param own table<string, table>
---@return table<string, table> own
function report.options(own)
  own.top = { type = 'integer', default = 10, min = 1, help = 'entries to print' }
  flamegraph.looks(own)
  own.diff = nil -- wakers have no base
  own.flame_graph = { type = 'string', argument = 'FILE', group = 'flame',
    help = 'draw a flame graph of waits and wakers to FILE.svg or FILE.html' }
  return own
end

--- Returns what tells entries of the same task and stacks apart.
local function how(entry) return entry.state .. '\n' .. table.concat(entry.wakers, '\n') end

---@class OffCpuReport
local Report = {}
Report.__index = Report

--- Creates the report.
---@param opt table
---@param out Output
---@param session Session
---@param tracked OffCpu
---@return OffCpuReport
function report.new(opt, out, session, tracked)
  if opt.flame_graph then
    if not svg.kind(opt.flame_graph) then failure.usage '--flame-graph requires a FILE that ends in .svg or .html' end
    svg.check(opt.flame_graph)
  end
  return setmetatable({
    opt = opt, out = out, session = session, waits = tracked,
    totals = wait_totals.new(), -- by name and state, stack, wakers, stack of the waker
    tree = opt.flame_graph and flametree.new(),
    spec = tables.new('offcpu', {
      { name = 'task' }, { name = 'state' }, { name = 'woken_by' },
      { name = 'count', align = 'right', metric = 'counter' },
      { name = 'total_ns', align = 'right', unit = 'ns', metric = 'counter' },
      { name = 'max_ns', align = 'right', unit = 'ns' }, { name = 'stack' }, { name = 'waker_stack' },
    }),
  }, Report)
end

--- Adds a wait.
---@param wait Wait
function Report:add(wait)
  local totals = self.totals
  totals:add(totals.id(wait.name * STATES + wait.state, wait.stack, wait.wakers, wait.waker_stack), wait.ns, 1, wait.ns)
end

--- Adds waits of a task, which nobody ended.
function Report:add_sums(name, state, stack, ns, count, max)
  self.totals:add(self.totals.id(name * STATES + state, stack, 0, waits.NO_STACK), ns, count, max)
end

--- Adds waits for which there is no room.
function Report:leave_out(ns) self.totals:leave_out(ns) end

--- Returns the functions of a stack as text.
local function functions(self, stack)
  if stack < 0 then return stack == waits.BEFORE and BEFORE or '' end
  local names = {}
  return table.concat(names, '\n', 1, self.session.frame_names(stack, names, {}))
end

--- Returns the entries. Stacks of the same functions are one.
local function entries(self)
  local totals, tracked = self.totals, self.waits
  return totals:entries(function(id)
    local task = totals:part(id, 1)
    local entry = { task = tracked.task_name(math.floor(task / STATES)), state = task % STATES,
      stack = totals:part(id, 2), wakers = tracked.waker_names(totals:part(id, 3)), waker_stack = totals:part(id, 4) }
    return entry, table.concat({ entry.task, how(entry), functions(self, entry.stack),
      functions(self, entry.waker_stack) }, '\n\n')
  end)
end

--- Adds an entry to the flame graph: the stack of the task, and on it that of the waker, upside down.
local function add_to_tree(self, entry)
  local session, list, sorts, names, kinds = self.session, {}, {}, {}, {}
  local function put(name, kind) list[#list + 1], sorts[#sorts + 1] = name, kind end
  if #entry.wakers > 0 then
    for i = #entry.wakers, 1, -1 do put(entry.wakers[i], 'r') end
    for i = entry.waker_stack < 0 and 0 or session.frame_names(entry.waker_stack, names, kinds), 1, -1 do
      put(names[i], kinds[i])
    end
    put(BETWEEN, 'r')
  end
  if entry.stack == waits.BEFORE then put(BEFORE, 'r') end
  for i = 1, entry.stack < 0 and 0 or session.frame_names(entry.stack, names, kinds) do put(names[i], kinds[i]) end
  flametree.add(self.tree, { entry.task }, list, sorts, #list, entry.total_ns, 0, self.opt.reverse)
end

--- Returns the text of the rows.
local function lines_of(rows)
  local lines = {}
  local function put(stack, title)
    lines[#lines + 1] = title
    for _, line in ipairs(stack) do lines[#lines + 1] = '    ' .. line end
  end
  for _, row in ipairs(rows) do
    lines[#lines + 1] = text.safe(('%s, %s%s: %s, %d times, max %s'):format(row.task, row.state,
      row.woken_by and ', woken by ' .. row.woken_by or '', units.time(row.total_ns), row.count,
      units.time(row.max_ns)))
    put(row.stack)
    if row.waker_stack then put(row.waker_stack, '  woken at') end
    lines[#lines + 1] = ''
  end
  return table.concat(lines, '\n') .. '\n'
end

local function row_of(self, entry)
  local lines = self.session.stack_lines
  return { task = entry.task, state = sched_switch.STATES[entry.state], count = entry.count, total_ns = entry.total_ns,
    max_ns = entry.max_ns, woken_by = #entry.wakers > 0 and table.concat(entry.wakers, ' < ') or nil,
    stack = entry.stack < 0 and { functions(self, entry.stack) } or lines(entry.stack),
    waker_stack = entry.waker_stack >= 0 and lines(entry.waker_stack) or nil }
end

--- Prints the waits since the last report.
function Report:print()
  local rows = {}
  for i, entry in ipairs(entries(self)) do
    if self.tree then add_to_tree(self, entry) end
    if i <= self.opt.top then rows[i] = row_of(self, entry) end
  end
  self.out:table(self.spec, rows, nil, function() return lines_of(rows) end)
  self.totals:finish(self.out, 'offcpu')
end

--- Prints the last report and draws the flame graph.
function Report:finish()
  local opt, tree = self.opt, self.tree
  self:print()
  if not tree then return end
  if tree.value == 0 then return self.out:warn 'flame graph: no waits, nothing to draw' end
  flamegraph.draw(opt.flame_graph, tree, { title = opt.title or 'Time off CPU, and wakers', unit = 'ns',
    inverted = opt.inverted, reversed = opt.reverse })
end

return report
