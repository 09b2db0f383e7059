-- SPDX-License-Identifier: GPL-2.0-only
--- Sample filters that a BPF program evaluates in the kernel (bpf/filter.bpf.c): --irqs-disabled and similar options.
local ffi = require 'ffi'
local btf = require 'bindings.bpf.btf'
local failure = require 'bindings.base.failure'
local libbpf = require 'bindings.bpf.libbpf'
local Object = require 'bindings.bpf.object'
local priorities = require 'bpf.run.priorities'

local C = ffi.C
local sample_filter = {}

--- The options, and the structure member of the kernel that each requires.
local OPTIONS = {
  irqs_disabled = {},
  tif_need_resched = { 'task_struct', 'thread_info' },
  nr_running_min = { 'sched_entity', 'cfs_rq' },
  nr_running_max = { 'sched_entity', 'cfs_rq' },
  exclude_pid = {},
  sched_policy = { 'task_struct', 'policy' },
  prio = { 'task_struct', 'prio' },
}
local ORDER = {
  'irqs_disabled', 'tif_need_resched', 'nr_running_min', 'nr_running_max', 'exclude_pid', 'sched_policy', 'prio',
}

--- Fails if this kernel lacks the structure member that an option requires.
local function check_kernel(option, kernel)
  local struct, member = OPTIONS[option][1], OPTIONS[option][2]
  if not struct then return end
  local id = kernel:find(struct, btf.KIND.STRUCT)
  for _, one in ipairs(id and kernel:members(id) or {}) do
    if one.name == member then return end
  end
  failure.unavailable("--%s: this kernel's %s has no member %s", (option:gsub('_', '-')), struct, member)
end

--- Opens the program, after checking that this kernel supports the options.
local function open(given)
  local option = '--' .. given[1]:gsub('_', '-')
  local bytes, missing = libbpf.built_in 'filter'
  if not bytes then failure.unavailable('%s: %s', option, missing) end
  local lib, no_lib = libbpf.open()
  if not lib then failure.unavailable('%s needs BPF: %s', option, no_lib) end
  local kernel, no_btf = btf.kernel()
  if not kernel then failure.unavailable('%s needs BTF: %s', option, no_btf) end
  for _, name in ipairs(given) do
    check_kernel(name, kernel)
  end
  return Object.open(option, bytes)
end

--- Loads the program if an option needs it, and attaches it to the perf events of the list.
---@param name string the profiler's name
---@param opt table parsed options
---@param list Event[]
---@param own? table options that the profiler declares itself and may use in its own way
---@return BpfObject? object must be kept until the events are closed
function sample_filter.apply(name, opt, list, own)
  local given, constants = {}, {}
  for _, option in ipairs(ORDER) do
    if opt[option] ~= nil and not (own and own[option]) then
      given[#given + 1] = option
      constants[option] = opt[option]
    end
  end
  if #given == 0 then return end
  local option = (given[1]:gsub('_', '-'))
  if opt.input then failure.usage('%s: --%s is only for live events', name, option) end
  local filtered = {}
  for _, event in ipairs(list) do
    if event.kind then filtered[#filtered + 1] = event end
  end
  -- A program on a tracepoint would drop its events for all other tracers, too.
  if #filtered == 0 then
    failure.usage('%s: --%s applies to hardware, clock and memory events only; none are selected', name, option)
  end
  if constants.prio then
    local wanted, message = priorities.parse(opt.prio)
    if not wanted then failure.usage('%s', message) end
    constants.prio, constants.has_prio = {}, 1
    for priority in pairs(wanted.has) do constants.prio[priority] = 1 end
  end
  local object = open(given)
  object:set_constants(constants)
  object:load()
  for _, event in ipairs(filtered) do event.request.program = object:program_fd 'filter' end
  return object
end

--- Returns the reason why a built-in program cannot be loaded on this machine, nil if it can.
---@param name string
---@return string?
function sample_filter.missing(name)
  local bytes, message = libbpf.built_in(name)
  if not bytes then return message end
  local lib, no_lib = libbpf.open()
  if not lib then return no_lib end
  local kernel, no_btf = btf.kernel()
  if not kernel then return no_btf end
  local object = Object.open(name, bytes)
  C.bpf_log_take()
  local code = lib.bpf_object__load(object.object)
  if code < 0 then return object:load_error(-code) end
end

return sample_filter
