-- SPDX-License-Identifier: GPL-2.0-only
--- Events of the scheduler about some threads only, rejected in the kernel by BPF programs (bpf/threads.bpf.c):
--- who is switched to, or woken by others, is known to no perf event of the thread itself, and all switches of the
--- machine are many. Without BPF they all come, and the profiler rejects.
local attach = require 'bindings.bpf.attach'
local Object = require 'bindings.bpf.object'
local libbpf = require 'bindings.bpf.libbpf'

local task_filter = {}

local NEW = 'on_wakeup_new'
-- By tracepoint: the program, the array that it writes to.
local PROGRAMS = {
  ['sched:sched_switch'] = { 'on_switch', 'switches' },
  ['sched:sched_wakeup'] = { 'on_wakeup', 'wakeups' },
  ['sched:sched_wakeup_new'] = { NEW, 'new_wakeups' },
}

--- Loads the programs, and lets them write the events that there are programs for. Returns where threads are
--- marked, and the object that is a part of. It raises what fails.
local function open(run, list, inherits)
  local object = Object.open('the filter of threads', assert(libbpf.built_in 'threads'))
  local constants = { inherits = inherits and 1 or 0 }
  for _, event in ipairs(list) do
    if PROGRAMS[event.name] then
      constants[event.name:match ':(.*)'] = { type = tonumber(event.request.attr.config), size = event.view.size }
    end
  end
  object:set_constants(constants)
  object:load()
  if not run.opt.dry_run then
    attach.attach(object, NEW) -- which marks them
    for _, event in ipairs(list) do
      local program = PROGRAMS[event.name]
      if program and program[1] ~= NEW then attach.attach(object, program[1]) end
    end
  end
  local marks = object:variable('marks', { '.bss' })
  for _, event in ipairs(list) do
    local program = PROGRAMS[event.name]
    if program then event.request.through = object.lib.bpf_map__fd(object:find('map', program[2])) end
  end
  return marks, object
end

--- Has the kernel leave out what is about other threads than those that the run names, where it can.
---@param run Run
---@param list Event[] none of them twice
---@param inherits boolean new threads count too
---@return ffi.cdata*? marks uint8_t *: to be set to 1 at the number of each thread that is meant; nil: all come
---@return BpfObject? object that the marks are a part of
function task_filter.apply(run, list, inherits)
  local ok, marks, object = pcall(open, run, list, inherits)
  if ok then return marks, object end
  if run.opt.verbose >= 1 then
    run.out:warn(('%s: all events of the scheduler come, no BPF program leaves any out: %s'):format(run.name,
      tostring(marks)))
  end
end

return task_filter
