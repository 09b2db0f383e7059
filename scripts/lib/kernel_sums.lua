-- SPDX-License-Identifier: GPL-2.0-only
--- Profilers whose sums a built-in BPF program adds up where nothing else needs the events.
---
---   local program = not kernel_sums.needs_events(opt, session) and kernel_sums.load('oncpu', session, opt, out, {})
---   if program then return sums_handlers(program) end
local kernel_sums = {}

-- Options that need each event.
local NEED_EVENTS = {
  'input', 'filter', 'exit_n', 'cgroups', 'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest',
  'exclude_pid', 'irqs_disabled', 'tif_need_resched', 'nr_running_min', 'nr_running_max', 'sched_policy',
  'perfeval_cpus', 'perfeval_pids', 'export', 'record', 'push', 'watch', 'sampling_limit',
}

--- Returns whether the events of a run are needed.
---@param opt table
---@param session Session
---@param more? string[] further options that need events
---@return boolean
function kernel_sums.needs_events(opt, session, more)
  for _, names in ipairs { NEED_EVENTS, more } do
    for _, name in ipairs(names) do
      if opt[name] then return true end
    end
  end
  return session.is_source or opt.verbose > 1 or opt.capture == 'perf'
end

--- Loads and attaches a program that includes bpf/targets.h. Returns nil if this kernel or machine cannot run it.
---@param name string of the profiler
---@param session Session
---@param opt table
---@param out Output
---@param parameters fun(): BpfParameters
---@return Bpf?
function kernel_sums.load(name, session, opt, out, parameters)
  local ok, program = pcall(function()
    local params = parameters()
    params.targets = session.named_threads
    params.constants.has_targets = session.named_threads and 1 or 0
    params.constants.inherits = session.inherits and 1 or 0
    local loaded = session.bpf(params)
    loaded:attach()
    return loaded
  end)
  if ok then return program end
  if opt.verbose > 0 then
    local reason = type(program) == 'table' and program.refused or tostring(program):match '^[^\n]*'
    out:warn(('%s: reading each event, without a BPF program: %s'):format(name, reason))
  end
end

--- Returns a function that makes the program continue on the other side of its sums. It returns the side, 0 or 1, that
--- can be read then.
---@param program Bpf with a variable `side` and a program `settle`, which ends what a CPU does on the side before
---@return fun(): integer
function kernel_sums.sides(program)
  local side = 0
  return function()
    local before = side
    side = 1 - side
    program:set('side', side)
    program:run 'settle'
    return before
  end
end

--- Limits the time in which a program counts target threads: from the start of the run, which the session tells it, to
--- the end.
---@param program Bpf
---@param opt table
---@param session Session
---@return fun() begin must be called with the events' start
---@return fun(time: number): number finish must be called with the run's end; returns the end of the time
function kernel_sums.limits(program, opt, session)
  local function set(time) program:set('ended', program:get 'begun' + time) end
  return function()
    if opt.duration then set(opt.duration) end
  end, function(time)
    if opt.duration and time >= opt.duration then return opt.duration end
    time = session.now()
    set(time)
    return time
  end
end

return kernel_sums
