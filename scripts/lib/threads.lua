-- SPDX-License-Identifier: GPL-2.0-only
--- The tasks that -p, -t and a workload mean, for profilers that take the events of all CPUs (`everywhere`),
--- because events about a task also happen while others run:
---
---   local ours = threads.new(session, opt)
---   ... if ours.has(ev.prev_pid) then ...
---   return ours.follow { ['sched:sched_switch'] = ... }
local array = require 'lib.array'
local sys = require 'bindings.base.sys'

local threads = {}

--- All pids and tids are below it.
threads.MAX = sys.PIDS_MAX
--- All CPU numbers are below it.
threads.MAX_CPUS = sys.CPUS_MAX

local NEW = 'sched:sched_wakeup_new'

--- Its functions need no colon.
---@class Threads
---@field has fun(pid: integer): boolean whether the task is meant; never the idle task. What it accepts is an
--- index below threads.MAX
---@field filter fun(...: string): string? a filter for the kernel: one of these fields is a task that is meant;
--- nil where only has() can tell
---@field born fun(ev: Ev) is to be called with each sched_wakeup_new; follow() adds such a handler where there is
--- none
---@field follow fun(handlers: table, begin?: fun(tids: integer[])): table adds the handlers that has() needs;
--- begin is called with the threads that the user has named

--- The tasks of a run.
---@param session Session
---@param opt table
---@param only_ours? boolean the kernel may leave out events about other threads: they have no filters of the
--- user's and are not printed
---@return Threads
function threads.new(session, opt, only_ours)
  local everyone, inherits = not session.named_threads, session.inherits
  local wanted, max = array.new(threads.MAX), threads.MAX
  local self = {}

  function self.has(pid) return pid > 0 and pid < max and (everyone or wanted[pid] ~= 0) end

  -- New threads are found by looking at all tasks: the kernel's filters know only numbers.
  function self.filter(...)
    if everyone or inherits or not opt.tids or opt.pids then return end
    local terms = {}
    for _, field in ipairs { ... } do
      for _, tid in ipairs(opt.tids) do terms[#terms + 1] = ('%s == %d'):format(field, tid) end
    end
    return table.concat(terms, ' || ')
  end

  function self.born(ev)
    local pid, parent = ev.pid, ev._tid -- it is its parent that wakes a new task
    if everyone or pid <= 0 or pid >= max then return end
    wanted[pid] = inherits and parent > 0 and parent < max and wanted[parent] or 0
  end

  function self.follow(handlers, begin)
    if only_ours and not (everyone or session.is_source or self.filter 'pid') then
      session.want { only_threads = true }
    end
    if inherits and not everyone and not handlers[NEW] and session.supports(NEW) then handlers[NEW] = self.born end
    handlers.targets = function(tids)
      for _, tid in ipairs(tids) do wanted[tid] = 1 end
      if begin then begin(tids) end
    end
    return handlers
  end
  return self
end

return threads
