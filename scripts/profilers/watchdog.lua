-- SPDX-License-Identifier: GPL-2.0-only
--- Predicts hard and soft lockups before the kernel's watchdog reports them: it watches the timer and the thread of
--- that watchdog with a shorter limit.
local cpu_list = require 'lib.cpu_list'
local failure = require 'lib.failure'
local fs = require 'lib.fs'
local kernel_files = require 'lib.engines.kernel_files'
local tables = require 'lib.table'

local SLACK = 2e8 -- ns that the timer may be late
local REPEAT = 1e8 -- ns between two lines about a CPU that other CPUs check

local function has_cpu(list, cpu)
  for _, range in ipairs(list and cpu_list.parse(list) or {}) do
    if cpu >= range.first and cpu <= range.last then return true end
  end
  return false
end

--- Whether the kernel's watchdog still watches a CPU. Its timer is stopped when the CPU goes offline or by sysctl.
local function is_watched(cpu, thresh)
  return tonumber(fs.line '/proc/sys/kernel/watchdog_thresh') == thresh
    and fs.line '/proc/sys/kernel/watchdog' ~= '0'
    and has_cpu(fs.line '/proc/sys/kernel/watchdog_cpumask', cpu)
    and has_cpu(fs.line '/sys/devices/system/cpu/online', cpu)
end

local OWN = { 'comm', 'cpu', 'limit', 'passed', 'pid', 'time' }
local OTHER = { 'cpu', 'limit', 'passed', 'seen_by', 'time' }

--- What is printed of predicted lockups, and how often each kind was predicted, for metrics.
local function new_printer(opt, out)
  tables.record('soft lockup', OWN)
  tables.record('hard lockup', OWN)
  tables.record('hard lockup', OTHER)
  local spec = tables.offered('lockups', { { name = 'kind' }, { name = 'cpu' },
    { name = 'predicted', metric = 'counter' } })
  local printer, predicted = {}, {}
  local function count(kind, cpu) predicted[#predicted + 1] = { kind = kind, cpu = cpu, predicted = 1 } end

  --- Checks the CPU of an event.
  function printer.check(ev, kind, since, limit)
    local cpu, passed = ev._cpu, ev._time - since
    if passed <= limit then
      if opt.verbose > 0 then out:warn(('DEBUG: %s - CPU#%d [%d <= %d]'):format(kind, cpu, passed, limit)) end
      return
    end
    count(kind, cpu)
    if out.format == 'text' then
      out:printf('WILL: %s - CPU#%d [%d > %d]\n', kind, cpu, passed, limit)
      out:print_event(ev)
    else
      out:record(kind, { time = out:seconds(ev._time), cpu = cpu, pid = ev._pid, comm = ev._comm, passed = passed,
        limit = limit }, OWN)
    end
  end

  --- Prints that another CPU is locked up.
  function printer.other(ev, cpu, passed, limit)
    count('hard lockup', cpu)
    out:record('hard lockup', { time = out:seconds(ev._time), cpu = cpu, seen_by = ev._cpu, passed = passed,
      limit = limit }, OTHER, ('WILL: hard lockup - CPU#%d [%d > %d], seen by CPU#%d\n'):format(cpu, passed, limit,
      ev._cpu))
  end

  function printer.offer()
    out:offer(spec, predicted)
    predicted = {}
  end
  return printer
end

--- Returns the threshold of the kernel's watchdog in s, and the address of its timer.
local function configuration()
  local thresh = tonumber(fs.line '/proc/sys/kernel/watchdog_thresh')
  local timer = kernel_files.symbol 'watchdog_timer_fn'
  if not thresh or thresh == 0 then failure.unavailable 'watchdog: kernel.watchdog_thresh is missing or 0' end
  if not timer or timer == '0' then
    failure.unavailable 'watchdog: /proc/kallsyms hides the address of watchdog_timer_fn'
  end
  return thresh, timer
end

return {
  summary = 'Predict hard and soft lockups, and show what the CPU runs',
  description = [[
The kernel's watchdog has a timer on each CPU that expires every 2/5 of
kernel.watchdog_thresh and wakes a thread. A hard lockup is predicted if the
timer has not expired for 0.2 s longer than that, a soft lockup if the thread
has not run for that time.

Each CPU is checked -F times per second, by cycles if there is a hardware PMU.
Otherwise cpu-clock is used, which does not sample a CPU whose interrupts are
off; other CPUs then detect the lockup in time, but without a stack. -v prints
each check.]],
  examples = { { 'profscript watchdog -F 10 -g', 'predicted lockups with stacks' } },
  unsupported = { 'event', 'input', 'threads' }, -- it watches the CPUs of this kernel
  options = {
    call_graph = {}, user_callchain = {}, kernel_callchain = {},
    freq = { default = 10 },
  },

  start = function(opt, out, session)
    local thresh, timer = configuration()
    local period = thresh * 2e9 / 5
    local clock = session.event {
      session.supports 'cycles' and 'cycles' or 'cpu-clock', freq = opt.freq, stack = opt.call_graph,
    }
    local expired, ran = {}, {} -- by CPU: when the timer last expired, when the thread last ran
    local overdue = {} -- by CPU: when other CPUs first found it overdue, later when that was last printed
    local printer = new_printer(opt, out)

    --- Checks another CPU. Prints it at the second check only: after a pause of the whole machine, the expiry of its
    --- timer may be the next event.
    local function check_other(ev, cpu, passed, limit)
      local before = overdue[cpu] or ev._time
      overdue[cpu] = before
      if ev._time - before < REPEAT then return end
      overdue[cpu] = ev._time
      if not is_watched(cpu, thresh) then
        expired[cpu] = nil
        return
      end
      printer.other(ev, cpu, passed, limit)
    end

    return {
      [clock] = function(ev)
        local limit = period + SLACK
        for cpu, since in pairs(expired) do
          if cpu == ev._cpu then
            printer.check(ev, 'hard lockup', since, limit)
          elseif ev._time - since > limit then
            check_other(ev, cpu, ev._time - since, limit)
          else
            overdue[cpu] = nil
          end
        end
      end,
      lost = function() expired, ran, overdue = {}, {}, {} end,
      interval = printer.offer,
      stop = printer.offer,
      ['timer:hrtimer_expire_entry/function==0x' .. timer .. '/'] = function(ev)
        local cpu = ev._cpu
        expired[cpu] = ev._time
        ran[cpu] = ran[cpu] or ev._time
        printer.check(ev, 'soft lockup', ran[cpu], period + SLACK)
      end,
      ['sched:sched_switch/next_comm~"migration/*"/'] = function(ev) ran[ev._cpu] = ev._time end,
    }
  end,
}
