-- SPDX-License-Identifier: GPL-2.0-only
--- Task filter: restricts scheduler events to some threads with BPF programs (bpf/threads.bpf.c). A thread's own perf
--- events miss switches to the thread and wakeups by others, and recording all switches of the machine is expensive.
--- Without BPF, all events are recorded and the profiler drops those of other threads.
local attach = require 'bindings.bpf.attach'
local Object = require 'bindings.bpf.object'
local libbpf = require 'bindings.bpf.libbpf'
local sys = require 'bindings.base.sys'

local task_filter = {}

local NEW = 'on_wakeup_new'
-- By tracepoint: the program and its output, a perf event array.
local PROGRAMS = {
  ['sched:sched_switch'] = { 'on_switch', 'switches' },
  ['sched:sched_wakeup'] = { 'on_wakeup', 'wakeups' },
  ['sched:sched_wakeup_new'] = { NEW, 'new_wakeups' },
}

--- Loads the programs and makes them the source of the events in PROGRAMS. Returns the marks of the threads and the
--- object that owns them. Raises errors.
local function open(run, list, inherits, common)
  local object = Object.open('task filter', assert(libbpf.built_in 'threads'))
  local constants = { inherits = inherits and 1 or 0, common = common }
  for _, event in ipairs(list) do
    if PROGRAMS[event.name] then
      constants[event.name:match ':(.*)'] = { type = tonumber(event.request.attr.config), size = event.view.size }
    end
  end
  object:set_constants(constants)
  object:load()
  if not run.opt.dry_run then
    attach.attach(object, NEW) -- marks new threads, so it is attached even without its event
    for _, event in ipairs(list) do
      local program = PROGRAMS[event.name]
      if program and program[1] ~= NEW then attach.attach(object, program[1]) end
    end
  end
  local marks, codec = object:variable('marks', { '.bss' })
  assert(codec.size == sys.PIDS_MAX, 'bpf/threads.bpf.c: the size of marks is not PIDS_MAX')
  for _, event in ipairs(list) do
    local program = PROGRAMS[event.name]
    if program then event.request.bpf_array = object.lib.bpf_map__fd(object:find('map', program[2])) end
  end
  return marks, object
end

--- Makes the kernel drop scheduler events that are not about the target threads, if BPF is available.
---@param run Run
---@param list Event[] without duplicates
---@param inherits boolean include new threads of the targets
---@param common? CommonBytes nil: common_flags and common_preempt_count are 0
---@return ffi.cdata*? marks uint8_t *, to be set to 1 at the tid of each target thread; nil: nothing is dropped
---@return BpfObject? object owner of the marks
function task_filter.apply(run, list, inherits, common)
  local ok, marks, object = pcall(open, run, list, inherits, common)
  if ok then return marks, object end
  if run.opt.verbose >= 1 then
    run.out:warn(('%s: recording the scheduler events of all threads, without a BPF filter: %s'):format(run.name,
      tostring(marks)))
  end
end

return task_filter
