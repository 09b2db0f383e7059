-- SPDX-License-Identifier: GPL-2.0-only
--- System call analysis, for profilers of pairs: latencies and errors of each call. A call that does not return, such
--- as exit, ends when the task ends. See lib.relation.
local array = require 'lib.array'
local bit = require 'bit'
local heat = require 'lib.pair_heatmap'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local latency = require 'lib.latency'
local number_names = require 'bindings.base.number_names'
local pairs = require 'lib.pairs'
local relation = require 'lib.relation'
local tables = require 'lib.table'
local values = require 'bindings.options.values'

local syscalls = {}

local ENTER, EXIT = 'raw_syscalls:sys_enter', 'raw_syscalls:sys_exit'
local MAX_ROWS = 65536 -- further calls share the row '(other)'
-- Errors. No program sees ERESTARTSYS to ERESTART_RESTARTBLOCK, 512 to 516: the call begins again.
local FAILED = 'ret < 0 && ret >= -4095 && (ret > -512 || ret < -516)'
local NO_NUMBER = -1 -- the number in the sys_exit of rt_sigreturn

local function is_only(stage, name) return #stage == 1 and stage[1].name == name end

local function columns(by_thread, than, has_variance)
  local time = tables.time_column
  local spread = tables.variance_columns(has_variance)
  return {
    { name = 'thread', width = 6, align = 'left', show = by_thread },
    { name = 'comm', width = 16, align = 'left', show = by_thread },
    {
      name = 'syscall',
      title = 'syscalls',
      width = 20,
      align = 'left',
      text = function(row) return ('%s(%d)'):format(row.syscall, select(2, number_names.syscall_abi(row.nr))) end,
    },
    { name = 'nr', data_only = true, metric = 'none' },
    { name = 'calls', width = 8, align = 'right', metric = 'counter', of_histogram = true },
    time('total', true),
    time 'min',
    time 'avg',
    time 'max',
    { name = 'err', width = 6, align = 'right', metric = 'counter' },
    tables.than_column(than),
    spread[1],
    spread[2],
    { name = 'latency_ns', metric = 'histogram' },
  }
end

local function hex(n)
  return type(n) == 'number' and ('%x'):format(n) or (bit.tohex(n):gsub('^0+(.)', '%1'))
end

--- Returns the text of an event as the kernel prints it, with the name of the system call after its number.
local function describe(ev, session)
  local name = session.syscall_name(ev.id)
  if ev._event == EXIT then return ('%s: NR %d %s = %d'):format(EXIT, ev.id, name, ev.ret) end
  if ev._event ~= ENTER then return end
  local args = {}
  for i = 0, 5 do args[i + 1] = hex(ev.args[i]) end
  return ('%s: NR %d %s (%s)'):format(ENTER, ev.id, name, table.concat(args, ', '))
end

--- The times and errors of a run, by call, and by thread if so wanted.
local function new_calls(session, by_thread, than, has_variance)
  return {
    session = session, by_thread = by_thread, rows = intern.new(by_thread and 2 or 1, MAX_ROWS),
    hists = hist.set(MAX_ROWS + 1, than), errors = array.new(MAX_ROWS + 1),
    spec = tables.new('syscalls', columns(by_thread, than ~= nil, has_variance)),
  }
end

local function row_of(calls, id)
  local found = calls.hists:get(id)
  local stats, is_other = found:stats(), id == MAX_ROWS
  local row = {
    nr = is_other and -1 or calls.rows:part(id, calls.by_thread and 2 or 1),
    calls = stats.count,
    total_ns = stats.sum,
    min_ns = stats.min,
    avg_ns = math.floor(tonumber(stats.sum) / stats.count + 0.5),
    max_ns = stats.max,
    err = calls.errors[id],
    than = stats.over,
    latency_ns = found,
  }
  tables.variance_fields(row, stats)
  row.syscall = is_other and '(other)' or calls.session.syscall_name(row.nr)
  if calls.by_thread then
    row.thread = is_other and math.huge or calls.rows:part(id, 1)
    row.comm = is_other and '' or calls.session.task_name(row.thread)
  end
  return row
end

local function before(a, b)
  if a.thread ~= b.thread then return a.thread < b.thread end
  if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
  return a.nr < b.nr
end

--- Prints the table.
---@param only_over? boolean print it only if a call took too long
local function print_calls(calls, out, only_over)
  local list, over, rows = {}, 0, calls.rows
  for id = 0, rows:count() - 1 do list[id + 1] = row_of(calls, id) end
  if rows:overflow() > 0 then list[#list + 1] = row_of(calls, MAX_ROWS) end
  table.sort(list, before)
  for _, row in ipairs(list) do over = over + row.than end
  if not only_over or over > 0 then out:table(calls.spec, list) end
end

--- Starts a new table.
local function clear(calls)
  for id = 0, calls.rows:count() - 1 do calls.errors[id] = 0 end
  calls.errors[MAX_ROWS] = 0
  calls.rows:clear()
  calls.hists:clear()
end

--- Returns the handlers of the profiler. Its stages are raw_syscalls:sys_enter and raw_syscalls:sys_exit.
---@param settings DelaySettings
---@return table? handlers nil: see message
---@return string? message
function syscalls.run(settings)
  local opt, out, session, found = values.optional(settings.opt), settings.out, settings.session, settings.events
  if #found.stages ~= 2 or not is_only(found.stages[1], ENTER) or not is_only(found.stages[2], EXIT) then
    return nil, ('the events must be -e %s -e %s, optionally with filters'):format(ENTER, EXIT)
  end
  if opt.cycle then return nil, '--cycle is not supported for system calls' end
  table.insert(found.stages[2], pairs.task_end)
  if not session.per_thread and not found.key then found.default_key = 'common_pid' end

  local than = opt.only_than or opt.than
  local calls = new_calls(session, opt.perins, than, opt.variance)
  local longest, shortest = than or math.huge, opt.lower or -1
  local prints = than ~= nil or opt.lower ~= nil
  local pass = prints and session.gate() or nil
  local map = opt.heatmap and not pass and heat.new(opt.heatmap, latency.kinds(found.stages), session) or nil

  local function pair(p, second)
    if map then map:add(p) end
    if p.ns <= longest and p.ns >= shortest then return end
    out:print_event(p.first_event)
    out:print_event(second)
  end
  local handlers = relation.run(settings.name, {
    keep = prints and not pass,
    pass = pass,
    value = 'id',
    rows = { by = opt.perins and { 'key', 'value' } or { 'value' }, ids = calls.rows, hists = calls.hists, same = 'id',
      any = NO_NUMBER, failed = FAILED,
      failures = calls.errors },
    pair = (prints or map) and pair or nil,
    than = not map and than or nil,
    lower = not map and opt.lower or nil,
    draw = function() print_calls(calls, out, opt.only_than ~= nil) end,
    report = function()
      print_calls(calls, out, opt.only_than ~= nil)
      clear(calls)
    end,
    stop = map and function() map:write(out) end or nil,
  }, found, opt, out, session)
  if handlers then handlers.describe = function(ev) return describe(ev, session) end end
  return handlers
end

return syscalls
