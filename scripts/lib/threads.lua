-- SPDX-License-Identifier: GPL-2.0-only
--- Target threads of a run: those of -p, -t, a workload or --cgroups, for profilers that record all CPUs (`everywhere`)
--- because events about a thread, such as its wakeup, also happen while other threads run.
---
---   local targets = threads.new(session, opt)
---   return targets.follow {
---     ['sched:sched_wakeup'] = function(ev) if targets.has(ev.pid) then ... end end,
---   }
local sys = require 'bindings.base.sys'

local threads = {}

--- The bound of thread IDs: all are less.
threads.MAX = sys.PIDS_MAX
--- The bound of CPU numbers: all are less.
threads.MAX_CPUS = sys.CPUS_MAX

local NEW = 'sched:sched_wakeup_new'

--- The functions are called with a dot.
---@class Threads
---@field has fun(pid: integer): boolean returns whether a thread is a target; false for the idle task and for numbers
--- from threads.MAX
---@field filter fun(...: string): string? returns a kernel filter for events with a target in one of these fields;
--- nil if the kernel cannot know all targets
---@field born fun(ev: Ev) follows new threads; call it in your handler of sched_wakeup_new, if you have one
---@field moved fun(ev: Ev) follows threads that get another id; call it in your handler of session.id_changes()
---@field follow fun(handlers: table, begin?: fun(tids: integer[]), sees_births?: boolean): table adds the handlers that
--- has() needs and returns the table; begin is called with the threads that the user has named; sees_births: one of the
--- handlers calls born() for each new thread

--- Creates the targets of a run.
---@param session Session
---@param opt table
---@param only_targets? boolean the kernel may leave out events about other threads; only if the user's filters do
--- not apply to the events and they are not printed
---@return Threads
function threads.new(session, opt, only_targets)
  local everyone, inherits = not session.named_threads, session.inherits
  local named, max = session.thread_set(), threads.MAX
  local self = { has = named.has }
  if everyone then self.has = function(pid) return pid > 0 and pid < max end end

  -- A kernel filter is a fixed list of thread IDs, which would miss new threads.
  function self.filter(...)
    if everyone or inherits or not opt.tids or opt.pids then return end
    local terms = {}
    for _, field in ipairs { ... } do
      for _, tid in ipairs(opt.tids) do terms[#terms + 1] = ('%s == %d'):format(field, tid) end
    end
    return table.concat(terms, ' || ')
  end

  function self.born(ev)
    if not everyone then named.born(ev.pid, ev._tid) end -- a new task is woken by its parent
  end

  function self.moved(ev)
    if not everyone and ev.pid < max then named.moved(ev.old_pid, ev.pid) end
  end

  function self.follow(handlers, begin, sees_births)
    if only_targets and not (everyone or session.is_source or self.filter 'pid') then
      session.want { only_threads = true }
    end
    if inherits and not everyone and not (sees_births or handlers[NEW]) and session.supports(NEW) then
      handlers[NEW] = self.born
    end
    handlers.targets = function(tids)
      named.add(tids)
      if begin then begin(tids) end
    end
    return handlers
  end
  return self
end

return threads
