-- SPDX-License-Identifier: GPL-2.0-only
--- Attach options: checks their combinations and builds struct session_target.
local cgroups = require 'bpf.groups.cgroups'
local cpu_list = require 'bindings.base.cpu_list'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local machines = require 'bindings.select.machines'
local processes = require 'bindings.select.processes'
local sys = require 'bindings.base.sys'
local typed_events = require 'bpf.pointers.typed_events'

local C = ffi.C
local attach = {}

-- Bytes of each stack that are copied by default: several frames of a library, or, if events are rare, whole stacks.
local COPY, LARGE_COPY = 512, 8192

--- Returns whether the run is limited to some threads.
---@param opt table parsed options
---@param words string[] the workload
---@return boolean
function attach.names_threads(opt, words)
  return #words > 0 or opt.pids ~= nil or opt.tids ~= nil
end

--- Returns whether the run is limited to some threads of a recording.
---@param opt table parsed options
---@return boolean
function attach.names_recorded(opt) return opt.input ~= nil and (opt.pids or opt.tids) ~= nil end

--- Returns whether events are attached to threads instead of CPUs.
---@param opt table parsed options
---@param words string[] the workload
---@param everywhere? boolean the profiler needs the events of all CPUs anyway
---@return boolean
function attach.per_thread(opt, words, everywhere)
  return not everywhere and not opt.input and attach.names_threads(opt, words)
end

--- Returns whether the workload is the target. Beside -p and -t it only ends the run.
---@param opt table parsed options
---@param words string[] the workload
---@return boolean
function attach.is_target(opt, words)
  return #words > 0 and not opt.pids and not opt.tids
end

--- Returns whether new threads and processes are attached to as well. The default is yes for -p and a workload, and
--- no for -t.
---@return boolean
function attach.inherits(opt, words)
  if opt.inherit ~= nil then return opt.inherit end
  return opt.ptrace or attach.is_target(opt, words) or opt.pids ~= nil
end

--- Returns whether perf has a ring for each thread, not for each CPU.
---@param opt table parsed options
---@param words string[] the workload
---@param everywhere? boolean
---@return boolean
function attach.has_thread_rings(opt, words, everywhere)
  return attach.per_thread(opt, words, everywhere) and not attach.inherits(opt, words) and not opt.cpus
end

local EXCLUDES = { 'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest' }
local LIVE_ONLY = { 'freq', 'period', 'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest' }

--- Fails if options contradict each other.
---@param name string the profiler's name
---@param opt table parsed options
---@param words string[] the workload
---@param own? table options that the profiler declares itself and may use in its own way
function attach.check(name, opt, words, own)
  local function refuse(...) failure.usage('%s: %s', name, (...):format(select(2, ...))) end
  local per_thread = attach.names_threads(opt, words)
  if opt.time and (not opt.input or machines.is_address(opt.input)) then refuse '--time is only for recordings' end
  if opt.container then
    if opt.cgroups then refuse '--container and --cgroups are mutually exclusive' end
    opt.cgroups = cgroups.of_option(opt.container, opt.input ~= nil) -- those of counted events
  end
  if opt.input then
    if #words > 0 or opt.cpus then refuse '--input cannot be combined with -C or a workload' end
    local of_others = machines.is_address(opt.input)
    if opt.cgroups and of_others then refuse '--cgroups and --container are not for events of other machines' end
    if per_thread and of_others then refuse '-p and -t are not for events of other machines' end
    for _, process in ipairs(opt.pids or {}) do
      if type(process) ~= 'number' then refuse('-p takes the numbers of processes of a recording, not %s', process) end
    end
    for _, exclude in ipairs(LIVE_ONLY) do
      local is_own = own and own[exclude]
      if opt[exclude] and not is_own then refuse('--%s is only for live events', (exclude:gsub('_', '-'))) end
    end
  end
  if opt.pids and not opt.input then processes.pids(opt.pids) end -- only to fail early; target() looks again
  if opt.cgroups and per_thread then
    refuse('--%s cannot be combined with -p, -t or a workload', opt.container and 'container' or 'cgroups')
  end
  for _, follow in ipairs { 'inherit', 'ptrace' } do
    if opt[follow] and not per_thread and not (own and own[follow]) then
      refuse('--%s requires -p, -t or a workload', follow)
    end
  end
  if opt.ptrace and opt.inherit == false then refuse '--ptrace and --no-inherit are mutually exclusive' end
  for i = 1, #EXCLUDES, 2 do
    local one, other = EXCLUDES[i], EXCLUDES[i + 1]
    if opt[one] and opt[other] then
      refuse('--%s and --%s together exclude everything', (one:gsub('_', '-')), (other:gsub('_', '-')))
    end
  end
end

--- Returns the CPUs of a list that are online, with a warning about the others. A list without any stays as it is:
--- opening the events fails, and names the CPUs that are online.
---@param what string the option or event, for the warning
---@param list string
---@param warn fun(line: string)
---@param doing? string what is done with the others; default: tracing
---@return string
function attach.online(what, list, warn, doing)
  local here, missing = cpu_list.split(list)
  if missing == '' or here == '' then return list end
  warn(('%s: CPU %s is not online, %s CPU %s'):format(what, missing, doing or 'tracing', here))
  return here
end

--- Applies the --exclude options to the events. They have no effect on tracepoints and probes.
---@param name string the profiler's name
---@param opt table parsed options
---@param list Event[]
---@param warn fun(line: string)
---@param own? table options that the profiler declares itself
function attach.restrict(name, opt, list, warn, own)
  local online = {} -- a glob gives its list to many events, and is warned about once
  for _, event in ipairs(list) do
    local cpus = event.attrs.cpus
    if (opt.input or event.machine) and cpus then
      failure.usage('%s: %s: cpus= is only for live events', name, event.name)
    end
    if cpus then
      online[cpus] = online[cpus] or attach.online(event.name, cpus, warn)
      event.attrs.cpus = online[cpus]
    end
  end
  for _, exclude in ipairs(EXCLUDES) do
    local is_done = not opt[exclude] or own and own[exclude] and own[exclude].own
    local applies = false
    for _, event in ipairs(is_done and {} or list) do
      if event.kind then
        event.request.attr[exclude] = 1
        applies = true
      end
    end
    if not is_done and not applies then
      failure.usage('%s: --%s applies to hardware, clock and memory events only; none are selected', name,
        (exclude:gsub('_', '-')))
    end
  end
end

--- Returns how many bytes of the stack the samples of an event contain, and whether also the kernel's chain of user
--- frames. By default both, so that code without frame pointers does not hide its callers; but not where others unwind,
--- or would take the chain twice, as perf does.
local function copy_of(opt, event)
  local chosen = opt.call_graph
  if opt.user_callchain == false then return 0, false end
  if type(chosen) == 'table' and chosen.mode ~= 'tables' then return chosen.bytes, chosen.mode ~= 'dwarf' end
  local elsewhere = opt.input or opt.record or opt.push or event.attrs.push or event.machine
  local request, attr = event.request, event.request.attr
  -- Where the kernel must not read user stacks; and control groups cannot be found behind a copy.
  local must_not = attr.exclude_callchain_user == 1 or bit.band(request.sample, C.PERF_SAMPLE_CGROUP) ~= 0
    or opt.container or typed_events.of(event)
  if jit.arch ~= 'x64' or elsewhere or opt.capture == 'bpf' or must_not then return 0, true end
  return (attr.freq ~= 0 or attr.sample_period > 1) and LARGE_COPY or COPY, true
end

--- Enables the recording of stacks for events.
---@param name string the profiler's name
---@param opt table parsed options
---@param list Event[]
---@param wanted? boolean the script's setting for all its events; nil: -g decides
---@param part? 'kernel'|'user' only these frames
function attach.stacks(name, opt, list, wanted, part)
  local all = opt.call_graph
  if wanted ~= nil then all = wanted end
  local parts = (opt.kernel_callchain ~= false and part ~= 'user' and C.STACK_KERNEL or 0)
    + (opt.user_callchain ~= false and part ~= 'kernel' and C.STACK_USER or 0)
  if parts == 0 then
    failure.usage('%s: --no-user-callchain and --no-kernel-callchain together leave no callchain', name)
  end
  local sampled = #list == 0
  for _, event in ipairs(list) do sampled = sampled or event.request.counted == 0 end
  if all and not sampled then
    failure.usage('%s: -g requires sampled events, but all events are only counted', name)
  end
  for _, event in ipairs(list) do
    local max = event.attrs['max-stack']
    if all or event.attrs.stack or event.params.stack or max then
      local bytes, keeps_chain = copy_of(opt, event)
      event.request.callchain = parts
      event.request.attr.sample_max_stack = type(max) == 'number' and max or 0
      event.request.attr.sample_stack_user = bytes
      if not keeps_chain then event.request.attr.exclude_callchain_user = 1 end
    end
  end
end

local function ids(list)
  local n = list and #list or 0
  return n > 0 and ffi.new('int32_t[?]', n, list) or nil, n
end

--- Returns a NULL-terminated array of strings, which is valid as long as the list.
local function strings(type, list)
  if not list or #list == 0 then return end
  local array = ffi.new(type .. '[?]', #list + 1)
  for i, text in ipairs(list) do
    array[i - 1] = ffi.cast(type, text)
  end
  return array
end

--- Builds the target for C.
---@param opt table parsed options
---@param words string[] the workload
---@param everywhere? boolean attach to all CPUs and select the threads' events from them
---@param marks? ffi.cdata* array in which a BPF program looks up whether a thread is a target
---@param begun? ffi.cdata* uint64_t *: where it looks up when its events start
---@return ffi.cdata* target struct session_target
---@return table anchors memory that the target points to; must live as long as the target
function attach.target(opt, words, everywhere, marks, begun)
  local pids, nr_pids = ids(not opt.input and opt.pids and processes.pids(opt.pids))
  local tids, nr_tids = ids(not opt.input and opt.tids)
  -- With marks, programs know the tasks that events are about; perf's groups are those of the current task.
  local is_elsewhere = everywhere and marks or opt.input
  local argv, groups = strings('char *', words), strings('const char *', not is_elsewhere and opt.cgroups)
  local target = ffi.new('struct session_target', {
    cpus = opt.cpus,
    pids = pids,
    tids = tids,
    nr_pids = nr_pids,
    nr_tids = nr_tids,
    inherit = attach.inherits(opt, words) and 1 or 0,
    argv = argv,
    follow = opt.ptrace and 1 or 0,
    everywhere = everywhere and 1 or 0,
    cgroups = groups,
    pages = opt.mmap_pages,
    watermark = opt.watermark,
    overwrite = opt.overwrite and 1 or 0,
    marks = marks,
    nr_marks = marks and sys.PIDS_MAX or 0,
    begun = begun,
    realtime = opt.realtime,
  })
  return target, { pids, tids, argv, groups }
end

return attach
