-- SPDX-License-Identifier: GPL-2.0-only
--- Tells of a hard or soft lockup before the kernel's watchdog does: its own timer and thread are watched
--- with a shorter limit. It is longer than others because it asks what the kernel's watchdog is set to.
local failure = require 'lib.failure'

local SLACK = 2e8 -- ns that the timer may be late
local AGAIN = 1e8 -- ns between two lines about one CPU by others

--- Address of a kernel function as text; nil where it cannot be known.
local function address_of(name)
  local file = io.open '/proc/kallsyms'
  local found
  for line in file and file:lines() or function() end do
    found = found or line:match('^(%x+) %a ' .. name .. '$')
  end
  if file then file:close() end
  return found and not found:match '^0+$' and '0x' .. found or nil
end

local function line_of(path)
  local file = io.open(path)
  local line = file and file:read '*l'
  if file then file:close() end
  return line
end

local function has_cpu(list, cpu)
  for from, to in (list or ''):gmatch '(%d+)%-?(%d*)' do
    if cpu >= tonumber(from) and cpu <= (tonumber(to) or tonumber(from)) then return true end
  end
  return false
end

--- Whether the kernel's watchdog still looks after a CPU: its timer is stopped with the CPU and by the administrator.
local function is_watched(cpu, thresh)
  return tonumber(line_of '/proc/sys/kernel/watchdog_thresh') == thresh
    and line_of '/proc/sys/kernel/watchdog' ~= '0'
    and has_cpu(line_of '/proc/sys/kernel/watchdog_cpumask', cpu)
    and has_cpu(line_of '/sys/devices/system/cpu/online', cpu)
end

return {
  summary = 'Predict hard and soft lockups, and show what each CPU does then',
  description = [[
The kernel's watchdog has a timer on each CPU that expires every 2/5 of kernel.watchdog_thresh, and a thread that each
expiry starts. A hard lockup will come where the timer has not expired for longer than that and 0.2 s, a soft
one where the thread has not run. CPUs are looked at -F times a second, by cycles where there is a hardware PMU.
The clock that is used elsewhere does not see a CPU whose interrupts are off; the other CPUs do, so it is told
in time, but without a stack. -v tells each check.]],
  examples = { { 'profscript watchdog -F 10 -g', 'with the stacks of what is about to lock up' } },
  unsupported = { 'event' },
  options = {
    call_graph = {}, user_callchain = {}, kernel_callchain = {},
    freq = { default = 10 },
  },

  start = function(opt, out, session)
    local thresh = tonumber(line_of '/proc/sys/kernel/watchdog_thresh')
    local timer = address_of 'watchdog_timer_fn'
    if opt.input or session.per_thread then return nil, 'it watches the CPUs of the running kernel' end
    if not thresh or thresh == 0 then failure.unavailable 'watchdog: kernel.watchdog_thresh is missing or 0' end
    if not timer then failure.unavailable 'watchdog: /proc/kallsyms hides the address of watchdog_timer_fn' end
    local period = thresh * 2e9 / 5
    local look = session.event {
      session.supports 'cycles' and 'cycles' or 'cpu-clock', freq = opt.freq, stack = opt.call_graph,
    }
    local expired, ran = {}, {} -- last times, by CPU
    local told = {} -- when a CPU was last found overdue by others

    local function judge(ev, what, since, limit)
      local cpu = ev._cpu
      local passed = ev._time - since
      if passed > limit then
        if out.format == 'text' then
          out:printf('WILL: %s - CPU#%d [%d > %d]\n', what, cpu, passed, limit)
          out:print_event(ev)
        else
          local task = { time = ev._time, cpu = cpu, pid = ev._pid, comm = ev._comm }
          task.passed, task.limit = passed, limit
          out:record(what, task)
        end
      elseif opt.verbose > 0 then
        out:warn(('DEBUG: %s - CPU#%d [%d <= %d]'):format(what, cpu, passed, limit))
      end
    end

    --- Of another CPU: at the second look, because after a pause of all its timer's event may be the next.
    local function judge_other(ev, cpu, passed, limit)
      local before = told[cpu] or ev._time
      told[cpu] = before
      if ev._time - before < AGAIN then return end
      told[cpu] = ev._time
      if not is_watched(cpu, thresh) then
        expired[cpu] = nil
      elseif out.format == 'text' then
        out:printf('WILL: hard lockup - CPU#%d [%d > %d], seen by CPU#%d\n', cpu, passed, limit, ev._cpu)
      else
        out:record('hard lockup', { time = ev._time, cpu = cpu, seen_by = ev._cpu, passed = passed, limit = limit })
      end
    end

    return {
      [look] = function(ev)
        local limit = period + SLACK
        for cpu, since in pairs(expired) do
          if cpu == ev._cpu then
            judge(ev, 'hard lockup', since, limit)
          elseif ev._time - since > limit then
            judge_other(ev, cpu, ev._time - since, limit)
          else
            told[cpu] = nil
          end
        end
      end,
      lost = function() expired, ran, told = {}, {}, {} end,
      ['timer:hrtimer_expire_entry/function==' .. timer .. '/'] = function(ev)
        local cpu = ev._cpu
        expired[cpu] = ev._time
        ran[cpu] = ran[cpu] or ev._time
        judge(ev, 'soft lockup', ran[cpu], period + SLACK)
      end,
      ['sched:sched_switch/next_comm~"migration/*"/'] = function(ev) ran[ev._cpu] = ev._time end,
    }
  end,
}
