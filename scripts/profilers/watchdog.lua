-- SPDX-License-Identifier: GPL-2.0-only
--- Tells of a hard or soft lockup before the kernel's watchdog does: its own timer and thread are watched
--- with a shorter limit.

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

local function number_in(path)
  local file = io.open(path)
  local n = file and tonumber(file:read '*l')
  if file then file:close() end
  return n
end

return {
  summary = 'Predict hard and soft lockups, and show what each CPU does then',
  description = [[
The kernel's watchdog has a timer on each CPU that expires every 2/5 of kernel.watchdog_thresh, and a thread that each
expiry starts. A hard lockup will come where the timer has not expired for longer than that and 0.2 s, a soft
one where the thread has not run. CPUs are looked at -F times a second, by cycles where there is a hardware PMU; the
clock that is used elsewhere does not see a CPU whose interrupts are off until they are on again. -v tells each check.
Tested with a kernel that has a soft lockup, but for hard ones with made-up times only.]],
  examples = { { 'profscript watchdog -F 10 -g', 'with the stacks of what is about to lock up' } },
  unsupported = { 'event' },
  options = {
    call_graph = {}, user_callchain = {}, kernel_callchain = {},
    freq = { default = 10 },
  },

  start = function(opt, out, session)
    local thresh = number_in '/proc/sys/kernel/watchdog_thresh'
    local timer = address_of 'watchdog_timer_fn'
    if opt.input or session.per_thread then return nil, 'it watches the CPUs of the running kernel' end
    if not thresh or thresh == 0 then error('watchdog: kernel.watchdog_thresh is not there or 0: none runs', 0) end
    if not timer then error('watchdog: the address of watchdog_timer_fn is not known: /proc/kallsyms hides it', 0) end
    local period = thresh * 2e9 / 5
    local look = session.event {
      session.supports 'cycles' and 'cycles' or 'cpu-clock', freq = opt.freq, stack = opt.call_graph,
    }
    local expired, ran = {}, {} -- last times, by CPU

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

    return {
      [look] = function(ev)
        local since = expired[ev._cpu]
        if since then judge(ev, 'hard lockup', since, period + 2e8) end
      end,
      ['timer:hrtimer_expire_entry/function==' .. timer .. '/'] = function(ev)
        local cpu = ev._cpu
        expired[cpu] = ev._time
        ran[cpu] = ran[cpu] or ev._time
        judge(ev, 'soft lockup', ran[cpu], period + 2e8)
      end,
      ['sched:sched_switch/next_comm~"migration/*"/'] = function(ev) ran[ev._cpu] = ev._time end,
    }
  end,
}
