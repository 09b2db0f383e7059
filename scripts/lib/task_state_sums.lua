-- SPDX-License-Identifier: GPL-2.0-only
--- The part of task-state that needs no events: a BPF program adds up the times of tasks (bpf/task_state.bpf.c). With
--- --than, it sends the events around long states.
local computed = require 'bpf.gen.computed'
local fs = require 'lib.fs'
local hist_maps = require 'bpf.gen.hist_maps'
local kernel_sums = require 'lib.kernel_sums'
local sent_waits = require 'bpf.gen.sent_waits'
local states = require 'lib.task_states'
local thread_states = require 'bpf.gen.thread_states'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local sums = {}

local FIRST_STATES = 8 -- in an element of the array
local MAX_ROWS, MAX_BUCKETS = 65536, 131072 -- of threads and states

--- Returns the number of the last CPU that is online, plus 1. Others share the hashes.
local function nr_cpus() return tonumber(fs.read('/sys/devices/system/cpu/online'):match '(%d+)%s*$') + 1 end

--- Returns what the program is told.
---@return BpfParameters
local function parameters(opt, session)
  local is_argument, uninterruptible, idle_with_flags = computed.switch_states()
  local only = (opt.interruptible and 2 ^ states.SLEEP or 0) + (opt.uninterruptible and 2 ^ states.BLOCKED or 0)
  local nr_threads = tonumber((fs.read '/proc/sys/kernel/pid_max')) or threads.MAX
  local rows, buckets = opt.perins and MAX_ROWS or 1, opt.perins and MAX_BUCKETS or 1
  local params = {
    built_in = 'task_state',
    constants = {
      only = only, omits_sleep = opt.interruptible == false and 1 or 0, by_thread = opt.perins and 1 or 0,
      has_prev_state = is_argument and 1 or 0, uninterruptible = uninterruptible,
      idle_with_flags = idle_with_flags and 1 or 0,
    },
    entries = {
      tasks = nr_threads,
      first_states = session.named_threads and math.ceil(nr_threads / FIRST_STATES) or 1,
      tables = opt.perins and 2 * nr_cpus() or 1,
      rows_0 = rows, rows_1 = rows, buckets_0 = buckets, buckets_1 = buckets,
    },
  }
  if opt.than then sent_waits.add(params, opt.than) end
  return params
end

--- Prints long states.
---@class TaskStatePrinter
---@field handlers table of the events that end them
---@field last fun(tid: integer, state: integer, ns: number, since?: number, time?: number) prints one that has not
--- ended, see SentWaits.kept
---@return TaskStatePrinter
local function printer(opt, out, session, program)
  local first
  local print_wait = require 'lib.task_state_waits'.printer(out, session, { get = function() return first end },
    states.NAMES)
  local text = ('states over %g ms are sent'):format(opt.than / 1e6)
  local sent = sent_waits.new(program, session, not states.slept(opt), text, function(tid, state, ns, ev, from)
    first = from
    print_wait(tid, state, ns, ev)
  end)
  return { handlers = sent.handlers, last = function(tid, state, ns, since, time)
    if ns <= opt.than or state == states.ON_CPU then return end
    first = since and sent.kept(tid, state, since, time)
    print_wait(tid, state, ns)
  end }
end

--- Returns the handlers of task-state; nil if it needs the events, or if this kernel or machine cannot run the program.
---@param opt table of task-state
---@param out Output
---@param session Session
---@param warn fun(missed: Unreported) warns about events that the kernel did not report
---@return table?
function sums.handlers(opt, out, session, warn)
  if kernel_sums.needs_events(opt, session) or opt.cpus then return end
  local program = kernel_sums.load('task-state', session, opt, out, function() return parameters(opt, session) end)
  if not program then return end
  local times, turn = states.table(opt, out, session), kernel_sums.sides(program)
  local has_targets, begin, finish = session.named_threads, kernel_sums.limits(program, opt, session)
  local cells, n = program:map 'cells', #states.NAMES
  local take_tables = opt.perins and hist_maps.tables(program:map 'tables')

  local function take()
    local side, names = turn(), nil
    if opt.perins then
      names = hist_maps.take_rows(program:map('rows_' .. side), program:map('buckets_' .. side), times.hists,
        times.row)
      take_tables(side, times.hists, times.row)
    end
    hist_maps.take_cells(cells, side * n, n, times.hists, times.other(1))
    return names
  end

  local current = has_targets and thread_states.new(program:map 'marks', program:map 'first_states',
    program:map 'tasks')
  local slept = states.slept(opt)

  local long = opt.than and printer(opt, out, session, program)
  local handlers = long and long.handlers or {}

  function handlers.targets(tids)
    if not has_targets then program:set('begun', session.time_base()) end
    begin()
    if not has_targets then return end
    states.of_threads(tids, function(tid, state)
      if state ~= states.ON_CPU and (not slept or slept[state]) then current.first(tid, state) end
    end)
  end
  function handlers.interval() times.print(take()) end
  function handlers.stop(time)
    if has_targets then time = finish(time) end
    local names, missed = take(), unreported.new()
    missed.switches, missed.wakeups = program:get 'unreported_switches', program:get 'unreported_wakeups'
    if has_targets then
      local begun = program:get 'begun'
      current.each(function(tid, state, since)
        local ns = since and begun + time - since or time
        local is_omitted = opt.interruptible == false and state == states.SLEEP
        if ns <= 0 or is_omitted or not states.lasts(tid, state, missed) then return end
        times.hists:add(times.row(tid, state), ns)
        if long then long.last(tid, state, ns, since, since and since - begun) end
      end)
    end
    times.print(names)
    warn(missed)
    local unkept = program:get 'unkept'
    if unkept > 0 then
      out:warn(('task-state: %d events at which states began could not be kept, and may be missing'):format(unkept))
    end
  end
  return handlers
end

return sums
