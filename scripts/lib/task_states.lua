-- SPDX-License-Identifier: GPL-2.0-only
--- The states of tasks, and the table of task-state: how long they last, by state or by thread and state.
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local sched_switch = require 'bindings.expr.sched_switch'
local sys = require 'bindings.base.sys'
local tables = require 'lib.table'

local MAX_THREADS = 65536
local UNKNOWN = '<...>'

local states = {}

local NAMES, ON_CPU, QUEUED = sched_switch.STATES, sched_switch.ON_CPU, sched_switch.QUEUED

local function read_stat(tid)
  local file = io.open(('/proc/%d/stat'):format(tid))
  local comm, letter = (file and file:read '*a' or ''):match '%((.*)%) (%a)'
  if file then file:close() end
  return comm, letter
end

--- Returns the threads of all processes.
---@return integer[]
function states.all_threads()
  local list = {}
  for _, pid in ipairs(sys.readdir '/proc' or {}) do
    for _, tid in ipairs(pid:match '^%d+$' and sys.readdir(('/proc/%s/task'):format(pid)) or {}) do
      list[#list + 1] = tonumber(tid)
    end
  end
  return list
end

--- Calls a function with the current state of each of the threads that has one. ON_CPU also stands for QUEUED.
---@param tids integer[]
---@param call fun(tid: integer, state: integer, comm: string)
function states.of_threads(tids, call)
  for _, tid in ipairs(tids) do
    local comm, letter = read_stat(tid)
    for state = 1, QUEUED - 1 do
      if NAMES[state] == letter then call(tid, state, comm) end
    end
  end
end

--- Returns whether a state has not ended yet. Where wakeups are missing, a task may have left the state in which it was
--- last seen; then one more is missing.
---@param missed Unreported
---@return boolean
function states.lasts(tid, state, missed)
  local is_doubtful = missed.wakeups + missed.switches > 0 and state ~= ON_CPU and state ~= QUEUED
  if not is_doubtful or select(2, read_stat(tid)) == NAMES[state] then return true end
  missed.wakeups = missed.wakeups + 1
  return false
end

--- Returns the states that a run is limited to; nil: all.
---@param opt table of task-state
---@return table<integer, boolean>?
function states.slept(opt)
  if not (opt.interruptible or opt.uninterruptible) then return end
  return { [sched_switch.SLEEP] = opt.interruptible, [sched_switch.BLOCKED] = opt.uninterruptible }
end

--- The table of a run.
---@class TaskStateTable
---@field hists HistSet times by row
---@field row fun(pid: integer, state: integer): integer returns the row of a thread's state
---@field other fun(state: integer): integer returns the row of the state of threads that have no rows of their own
---@field print fun(names?: table<integer, string>) prints the times. names: of threads that the session does not know,
--- which may have ended before it heard of them
---@field clear fun() starts a new table

--- Creates the table.
---@param opt table of task-state
---@param out Output
---@param session Session
---@return TaskStateTable
function states.table(opt, out, session)
  local keys, perins = intern.new(1, MAX_THREADS), opt.perins
  local hists = hist.set((MAX_THREADS + 1) * #NAMES, opt.than)
  local self = { hists = hists }

  function self.row(pid, state)
    local row = state - 1
    if perins then row = keys.id(pid) * #NAMES + row end
    return row
  end
  function self.other(state) return (perins and keys.max or 0) * #NAMES + state - 1 end

  local spec = tables.new('task-state', tables.latency_columns(opt.than ~= nil, {
    { name = 'thread', width = 6, align = 'right', show = perins },
    { name = 'comm', width = 16, align = 'left', show = perins },
    { name = 'state', title = 'St', width = 2, align = 'left' },
  }, opt.variance))
  local function name_of(pid, names)
    local name = session.task_name(pid)
    return name == UNKNOWN and names and names[pid] or name
  end
  local function add_rows(rows, id, pid, names)
    for i, name in ipairs(NAMES) do
      local times = hists:get(id * #NAMES + i - 1)
      if times and times:stats().count > 0 then
        local row = tables.latency_row({ thread = pid or '(other)', state = name, order = i }, times)
        row.comm = pid and name_of(pid, names) or ''
        rows[#rows + 1] = row
      end
    end
  end
  function self.print(names)
    local rows, pids = {}, {}
    if perins then
      for id = 0, keys:count() - 1 do pids[id + 1] = { id = id, pid = keys:part(id, 1) } end
      table.sort(pids, function(a, b) return a.pid < b.pid end)
      for _, one in ipairs(pids) do add_rows(rows, one.id, one.pid, names) end
      add_rows(rows, keys.max)
    else
      add_rows(rows, 0)
    end
    out:table(spec, rows)
  end
  function self.clear()
    hists:clear()
    keys:clear()
  end
  return self
end

return states
