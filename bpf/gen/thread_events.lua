-- SPDX-License-Identifier: GPL-2.0-only
--- Programs that write the events about target threads to perf's rings, and no others. perf's own events of a thread
--- miss the switches to it and its wakeups by others, and a filter of perf is a list of threads that is fixed.
local asm = require 'bpf.gen.asm'
local arguments = require 'bpf.gen.arguments'
local capture = require 'bpf.gen.capture'
local compile = require 'bpf.gen.compile'
local program = require 'bpf.gen.program'
local sys = require 'bindings.base.sys'
local types = require 'bpf.gen.kernel_types'

local CONTEXT, FRAME = asm.CONTEXT, asm.FRAME
local thread_events = {}

local FIELDS = { 'pid', 'prev_pid', 'next_pid' } -- that name threads
local CURRENT_CPU = 0xffffffff -- BPF_F_CURRENT_CPU
local ROOM = 64 -- bytes in the memory beside the fields

---@class ThreadEventsSpec
---@field event string "sys:name"
---@field list Field[]
---@field fields table<string, Field>
---@field type integer common_type
---@field filters Compiled[] all must be true
---@field threads Targets
---@field has_current? boolean also what these threads do with others
---@field nr_cpus integer

--- Returns whether programs can tell of which threads an event is.
---@param event Event
---@return boolean
function thread_events.names_threads(event)
  for _, name in ipairs(FIELDS) do
    if event.fields[name] then return capture.is_known(event.name) end
  end
  return false
end

local SCHEDULER = { switch = true, waking = true, wakeup = true, wakeup_new = true, migrate_task = true }

--- Returns whether an event is what the scheduler does with a thread, mostly in the time of others, so that a profiler
--- of some threads wants it from all CPUs. What is sent to others is what perf has.
---@param event Event
---@return boolean
function thread_events.is_of_scheduler(event)
  local of = event.owner
  if not of.wants.only_threads or of.script.profiler.everywhere or event.machine then return false end
  if of.opt.push or event.attrs.push or sys.has_foreign_pids() then return false end
  return SCHEDULER[event.name:match '^sched:sched_(.*)$'] or false
end

--- Generates code that jumps to `done` unless a field names a target.
local function check_fields(a, source, spec)
  local ours = a:new_label()
  if spec.has_current then
    local other = a:new_label()
    a:call 'get_current_task_btf'
    a:load(4, 7, 0, (types.member('task_struct', 'pid')))
    spec.threads:check_id(a, 7, other)
    a:go(ours)
    a:label(other)
  end
  for _, name in ipairs(FIELDS) do
    if spec.fields[name] then
      local other = a:new_label()
      source:load(a, 4, 7, spec.fields[name], 0)
      spec.threads:check_id(a, 7, other)
      a:go(ours)
      a:label(other)
    end
  end
  a:go 'done'
  a:label(ours)
end

local function generate(spec, memory, rings)
  local a, source = asm.new(), arguments.of(spec.event)
  local key, base = a:take(8), capture.RAW_AT % 8
  a:alu_r('mov', CONTEXT, 1)
  check_fields(a, source, spec)
  for _, filter in ipairs(spec.filters) do
    compile.condition(a, filter.tree, { source = source }, { none = 'done' })
  end
  a:store_value(8, FRAME, key, 0)
  a:map(1, memory)
  a:address(2, FRAME, key)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, 'done')
  a:alu_r('mov', 9, 0)
  a:call 'get_current_task_btf'
  a:alu_r('mov', 8, 0)
  capture.write_raw(a, source, spec, base - capture.RAW_AT)
  a:alu_r('mov', 1, CONTEXT)
  a:map(2, rings)
  a:value(3, CURRENT_CPU)
  a:address(4, 9, base)
  a:alu('mov', 5, capture.raw_size(spec.list))
  a:call 'perf_event_output'
  a:done()
  return a
end

--- Loads the program of an event, which is not attached yet. Refuses what this kernel cannot do.
---@param spec ThreadEventsSpec
---@return Descriptor program
---@return Descriptor rings the array of perf events to which it writes
function thread_events.load(spec)
  capture.check_kernel()
  local memory = program.memory(capture.raw_size(spec.list) + ROOM, 1, 'about_memory')
  local rings = program.perf_events(spec.nr_cpus, 'about_rings')
  return program.load(generate(spec, memory, rings), { type = 'tracing',
    name = 'about_' .. program.short(spec.event:match ':(.*)$'),
    tracepoint = types.tracepoint(spec.event:match ':(.*)$') }), rings
end

return thread_events
