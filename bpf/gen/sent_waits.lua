-- SPDX-License-Identifier: GPL-2.0-only
--- Waits that bpf/task_state.bpf.c sends because they took too long (bpf/waits.h). The event that ends one is a sample
--- in the ring of perf where it would be anyway. Its fields are followed by the wait, and by the event that began it.
local asm = require 'bpf.gen.asm'
local bpf_map = require 'bindings.bpf.map'
local capture = require 'bpf.gen.capture'
local facade = require 'bindings.base.facade'
local ffi = require 'ffi'
local libbpf = require 'bindings.bpf.libbpf'
local route = require 'bpf.plan.route'
local public_event = require 'bindings.view.public_event'
local sys = require 'bindings.base.sys'
local types = require 'bpf.gen.types'
local views = require 'bindings.view.views'

local sent_waits = {}

local MOST_NS = 2 ^ 53
local MOST_PLACES = 2 ^ 17 -- for threads; if there may be more, those that are seen have one

ffi.cdef [[
struct first_event {
  uint16_t kind, cpu;
  int32_t pid;
  union { struct { int32_t word, common_pid; }; uint8_t record[64]; };
};
struct sent_wait { uint8_t last[64]; uint64_t ns; uint32_t tid, state; struct first_event first; };
struct kept_event { uint64_t word; struct first_event event; };
]]
local wait_type, SIZE = ffi.typeof 'struct sent_wait *', ffi.sizeof 'struct sent_wait'
local RECORD = 64
local STATES = 16 -- in the last bits of a word

--- The offsets of fields in the records that the program writes.
local LAYOUTS = {
  trace_event_raw_sched_switch = { prev_comm = 8, prev_pid = 24, prev_prio = 28, prev_state = 32, next_comm = 40,
    next_pid = 56, next_prio = 60 },
  trace_event_raw_sched_wakeup_template = { comm = 8, pid = 24, prio = 28, target_cpu = 32 },
}

--- By kind, as in the program: the event, the variable with its type, and the map of the rings.
local KINDS = {
  { 'sched:sched_switch', 'switch_type', 'switches' },
  { 'sched:sched_wakeup', 'wakeup_type', 'wakeups' },
  { 'sched:sched_wakeup_new', 'new_type' },
}

--- Adds what makes the program send waits. Refuses if it cannot write the records of this kernel.
---@param params BpfParameters
---@param than number ns: waits that took longer
function sent_waits.add(params, than)
  local constants, entries = params.constants, params.entries
  for struct, members in pairs(LAYOUTS) do
    for name, offset in pairs(members) do
      if types.member(struct, name) ~= offset then asm.refuse('%s has another layout in this kernel', struct) end
    end
  end
  if sys.has_foreign_pids() then asm.refuse "the kernel's thread ids are not those of this pid namespace" end
  constants.common = capture.common_bytes() or asm.refuse 'programs write events of Linux 5.17 and later, on x86'
  constants.sends_waits, constants.than = 1, math.floor(math.min(than, MOST_NS))
  local most = tonumber((sys.read '/proc/sys/kernel/pid_max'))
  local has_all = most ~= nil and most <= MOST_PLACES
  constants.has_all_threads = has_all and 1 or 0
  entries.kept_by_tid, entries.kept_by_hash = has_all and most or 1, has_all and 1 or MOST_PLACES
end

---@class SentWaits
---@field handlers table<Event, fun(ev: Ev)>
---@field kept fun(tid: integer, state: integer, since: number, time: number): Ev? returns the event that began the
--- current state of a thread. since: ns of CLOCK_MONOTONIC; time: the same, as in ev._time

--- Requests the events around waits.
---@param program Bpf
---@param session Session
---@param has_switches boolean a switch may end a wait, too
---@param text string which waits are sent
---@param each fun(tid: integer, state: integer, ns: number, ev: Ev, first?: Ev) is called for each wait, with the
--- events at its end and its start, which are valid until it returns
---@return SentWaits
function sent_waits.new(program, session, has_switches, text, each)
  local inner = facade.object(program)
  local object, any = inner._object, inner._owner.run.services.any
  local self, classes, events = { handlers = {} }, {}, {}
  for kind, one in ipairs(KINDS) do
    local name, variable, rings = one[1], one[2], one[3]
    events[kind] = session.event { name }
    local event = public_event.real(events[kind])
    program:set(variable, tonumber(event.request.attr.config))
    classes[kind] = event.class
    if rings and (has_switches or rings ~= 'switches') then
      route.write(event.route, { way = 'states', by = 'BPF', does = 'added up', sent = text })
      event.request.bpf_array = object.lib.bpf_map__fd(object:find('map', rings))
    else
      event:derive()
      events[kind] = nil
    end
  end
  local first = ffi.new 'struct event'
  local function view(from, time)
    if from.kind == 0 then return nil end
    first.time, first.class, first.period = time, classes[from.kind], 1
    first.pid, first.tid, first.cpu = from.pid, from.common_pid, from.cpu
    first.raw, first.raw_size = from.record, RECORD
    return ffi.cast(any, first)
  end
  local function on_event(ev)
    local e = views.event(ev, 'task-state')
    if e.raw_size < SIZE then return end
    local wait = ffi.cast(wait_type, e.raw)
    local ns = tonumber(wait.ns)
    each(wait.tid, wait.state, ns, ev, view(wait.first, e.time - ns))
  end
  for _, event in pairs(events) do self.handlers[event] = on_event end

  local by_tid, by_hash = bpf_map.descriptor(program:map 'kept_by_tid'), bpf_map.descriptor(program:map 'kept_by_hash')
  local fd = by_tid.entries > 1 and by_tid.fd or by_hash.fd
  local key, kept = ffi.new 'uint32_t[1]', ffi.new 'struct kept_event'
  function self.kept(tid, state, since, time)
    key[0] = tid
    if libbpf.open().bpf_map_lookup_elem(fd, key, kept) ~= 0 then return nil end
    if tonumber(kept.word / STATES) ~= since or tonumber(kept.word % STATES) ~= state then return nil end
    return view(kept.event, time)
  end
  return self
end

return sent_waits
