-- SPDX-License-Identifier: GPL-2.0-only
--- Profilers whose sums a built-in BPF program adds up where nothing else needs the events.
---
---   local program = not kernel_sums.needs_events(opt, session) and kernel_sums.load('oncpu', session, opt, out, {})
---   if program then return sums_handlers(program) end
local options = require 'bindings.options.values'

local kernel_sums = {}

-- What the program cannot give to options.
local LACKS = { 'each_event', 'reload', 'newest', 'perf_samples', 'filter', 'groups', 'stacks', 'stored' }

--- Returns why the events of a run are needed; nil: the program does without.
---@param opt table
---@param session Session
---@return string?
function kernel_sums.needs_events(opt, session)
  for _, need in ipairs(LACKS) do
    local option = options.given(opt, need)
    if option then return option end
  end
  if session.is_source then return 'it is an event source' end
  return opt.verbose > 1 and '-vv prints them' or opt.capture == 'perf' and 'as --capture says' or nil
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
