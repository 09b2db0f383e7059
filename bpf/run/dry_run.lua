-- SPDX-License-Identifier: GPL-2.0-only
--- Output of --dry-run, also printed by -v before the run: the events, the target and the ring buffers.
local attach = require 'bindings.select.attach'
local bpf = require 'bindings.bpf.program'
local event_filter = require 'bindings.select.event_filter'
local events = require 'bindings.select.events'
local libc = require 'bindings.base.libc'
local route = require 'bpf.plan.route'
local sampling = require 'bindings.view.sampling'
local text = require 'bindings.base.text'

local dry_run = {}

local PER_CPU = 'one per CPU'

---@param event Event
---@param kernel_filter? string
---@param user_filter? string
---@param recorded boolean
---@param with_reasons? boolean
---@return string lines, each with its newline
function dry_run.event(event, kernel_filter, user_filter, recorded, with_reasons)
  local what = event.tracepoint and ('id %d'):format(tonumber(event.request.attr.config))
    or ('type %d, config %s'):format(event.request.attr.type, tostring(event.request.attr.config):gsub('U?LL$', ''))
  local way = event.route
  local sampled = event.request.counted == 1 and 'only counted'
    or way.does and ('%s in the kernel, by a BPF program%s'):format(way.does, way.sent and '; ' .. way.sent or '')
    or sampling.describe(event) .. (way.is_captured and ', captured by a BPF program' or '')
  local lines = { ('  %s: %s%s'):format(event.name, what, recorded and '' or ', ' .. sampled) }
  local function add(title, value)
    if value then lines[#lines + 1] = ('    %s: %s'):format(title, value) end
  end
  add('filter in the kernel', kernel_filter)
  add(route.is_filtered(way) and 'filter in the program' or 'filter in profscript', user_filter)
  add('kept', way.kept)
  add('passed on', event.gate and 'if the condition of ' .. event.gate .. ' is true')
  add('dropped in the kernel', event.request.bpf_array ~= 0 and not event.strings and not way.does
    and 'events of other threads, by a BPF program' or nil)
  local names = {}
  for i, one in ipairs(event.strings and event.strings.strings or {}) do names[i] = one.name end
  add('with the strings behind', event.strings and table.concat(names, ', ') .. ', by a BPF program' or nil)
  add('target', event.request.everywhere == 1 and 'all CPUs, restricted to events about the target below' or nil)
  local attrs = {}
  for name, value in pairs(event.attrs) do
    attrs[#attrs + 1] = value == true and name or ('%s=%s'):format(name, value)
  end
  table.sort(attrs)
  if with_reasons and not way.does and event.request.counted == 0 then
    add('not counted in the kernel', route.refusal(way, false))
    add('not captured by a BPF program', route.refusal(way, true))
  end
  add('attributes', #attrs > 0 and table.concat(attrs, ', ') or nil)
  return table.concat(lines, '\n') .. '\n'
end

---@param opt table parsed options
---@param words string[] the workload
---@param everywhere? boolean the profiler uses the events of all CPUs, even if the options name threads
---@return string target
---@return string rings number of ring buffers
function dry_run.target(opt, words, everywhere)
  local cpus = opt.cpus and 'CPUs ' .. opt.cpus or 'all online CPUs'
  if opt.container then return ('containers %s on %s'):format(table.concat(opt.container, ','), cpus), PER_CPU end
  if opt.cgroups then return ('cgroups %s on %s'):format(table.concat(opt.cgroups, ','), cpus), PER_CPU end
  if not attach.per_thread(opt, words, everywhere) then return cpus, PER_CPU end
  local what = {}
  local is_target, workload = attach.is_target(opt, words), table.concat(words, ' ')
  if is_target then what[1] = 'the workload ' .. workload end
  if opt.pids then what[#what + 1] = 'all threads of processes ' .. table.concat(opt.pids, ',') end
  if opt.tids then what[#what + 1] = 'threads ' .. table.concat(opt.tids, ',') end
  local target, inherits = table.concat(what, ' and '), attach.inherits(opt, words)
  if inherits then target = target .. (is_target and ', and its children' or ', and their children') end
  if opt.cpus then target = target .. ', on ' .. cpus end
  if #words > 0 and not is_target then target = ('%s, until %s ends'):format(target, workload) end
  return target, attach.has_thread_rings(opt, words, everywhere) and 'one per thread' or PER_CPU
end

--- Returns whether there are captured events, which have rings of CPUs, and whether there are other samples.
---@param list Event[]
---@return boolean captured
---@return boolean others
local function rings_of(list)
  local captured, others = false, false
  for _, event in ipairs(list) do
    if event.route.is_captured then
      captured = true
    elseif event.request.counted == 0 and route.is_read(event.route) then
      others = true
    end
  end
  return captured, others
end

--- Returns the addresses from which all events of a run are pulled; nil if there are events of this machine.
local function only_pulled(run, list)
  for _, event in ipairs(list) do
    if not event.machine then return end
  end
  local addresses = {}
  for i, machine in ipairs(run.events.machines.list) do addresses[i] = machine.address end
  return #addresses > 0 and table.concat(addresses, ', ') or nil
end

---@param run Run
---@param with_reasons? boolean why events are not counted or captured by BPF programs
---@return string lines
function dry_run.text(run, with_reasons)
  local list, opt, parts = events.shown(run.events), run.opt, {}
  parts[1] = ('%s: %d event%s\n'):format(run.name, #list, #list == 1 and '' or 's')
  for _, event in ipairs(list) do
    local kernel_filter = event_filter.for_kernel(event, run:own_threads())
    parts[#parts + 1] = dry_run.event(event, not event.machine and kernel_filter or nil, event.filters.user,
      run.is_recorded or event.machine ~= nil, with_reasons)
  end
  for _, follower in ipairs(run.followers) do
    if follower.describe then parts[#parts + 1] = ('  %s\n'):format(follower:describe()) end
  end
  for _, program in ipairs(run.programs) do parts[#parts + 1] = ('  BPF: %s\n'):format(bpf.describe(program)) end
  if #(opt.push or {}) > 0 then parts[#parts + 1] = ('all events go to: %s\n'):format(table.concat(opt.push, ', ')) end
  local pulled = only_pulled(run, list)
  if run.is_recorded then
    parts[#parts + 1] = ('source: recording %s\n'):format(opt.input)
  elseif pulled then
    parts[#parts + 1] = ('source: %s\n'):format(pulled)
  else
    local target, rings = dry_run.target(opt, run.workload, run.everywhere)
    local captured, others = rings_of(list)
    if captured and rings ~= PER_CPU then
      rings = others and ('%s, and %s for captured events'):format(rings, PER_CPU) or PER_CPU
    end
    parts[#parts + 1] = ('target: %s\n'):format(target)
    if captured or others then
      parts[#parts + 1] = ('rings: %s, %d pages (%d KiB) each, read when %d%% full\n'):format(rings, opt.mmap_pages,
        opt.mmap_pages * libc.getpagesize() / 1024, opt.watermark)
    end
  end
  return text.lines(table.concat(parts))
end

return dry_run
