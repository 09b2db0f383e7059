-- SPDX-License-Identifier: GPL-2.0-only
--- Perfetto's protobuf trace: a file of packets, each complete in itself, so that a file that was cut is readable.
--- Field numbers are those of protos/perfetto/trace/perfetto_trace.proto.
---
--- - An event is an instant on the track of its thread; without a thread, on that of its CPU. Its fields are debug
---   annotations.
--- - sched_switch, sched_wakeup and sched_waking also become ftrace events, from which Perfetto makes its tables of
---   scheduling.
--- - A pair is a slice on a track of its key. Flows lead from its first event to the slice, and on to its second event.
--- - A stack is a PerfSample. The stacks of an event have a sequence of packets of their own, which Perfetto shows as
---   a profile of its own.
local exports = require 'lib.export.export'
local ffi = require 'ffi'
local fields = require 'lib.export.fields'
local lanes = require 'lib.export.lanes'
local libc = require 'bindings.base.libc'
local stacks = require 'lib.export.stacks'
local switches = require 'lib.export.switches'
local views = require 'bindings.view.views'

local C = ffi.C
local cast, tonumber = ffi.cast, tonumber
local perfetto = { suffixes = { '.pftrace', '.perfetto-trace' } }

-- Sequences of packets. Those of events with stacks have the number of their class, which is 8 or more.
local MAIN, LOSSES = 1, 2
local CLEARED, NEEDS_STATE = 1, 2 -- sequence_flags
local BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4 -- TrackEvent.type
local INTEGER, POINTER = 4, 7 -- values of DebugAnnotation
local TIME_NS = 1 -- CounterDescriptor.unit
local BOOTTIME, MONOTONIC, REALTIME = 6, 3, 1 -- builtin clocks
local KERNEL, USER = 1, 2 -- Profiling.CpuMode
local CONTEXT_KERNEL = ffi.new('uint64_t', -128LL) -- in front of a callchain's kernel part

-- The numbers of tracks: the kind in the upper bits.
local CPU, THREAD, PROCESS, HOST, OTHER = 2 ^ 40, 2 ^ 41, 2 ^ 42, 2 ^ 43, 2 ^ 44
local MEMBER = 2 ^ 32 -- within the kind

---@class Perfetto : Exporter
local Perfetto = {}
Perfetto.__index = Perfetto

---@param target ExportTarget
---@return Perfetto
function perfetto.new(target)
  return setmetatable({ target = target, bytes = target.file.bytes, threads = {}, names = {}, processes = {}, cpus = {},
    hosts = {}, counters = {}, keys = {}, categories = {}, switches = switches.new(), nr_tracks = 0 }, Perfetto)
end

--- Writes a packet of a sequence without a time.
local function packet(b, sequence, flags, write)
  local at = C.proto_open(b, 1)
  C.proto_uint(b, 10, sequence)
  C.proto_uint(b, 13, flags)
  write()
  C.proto_close(b, at)
end

--- Writes a message of a field.
local function message(b, field, write)
  local at = C.proto_open(b, field)
  write()
  C.proto_close(b, at)
end

--- Returns integer fields { number, value, number, ... } as they are in a message.
local function encoded(list)
  local b = ffi.gc(C.bytes_new(), C.bytes_free)
  for i = 1, #list, 2 do C.proto_uint(b, list[i], list[i + 1]) end
  return ffi.string(b.data, b.size)
end

local function put_text(b, field, s) C.proto_text(b, field, s, #s) end

--- Writes the packets that begin the trace, before the first other one.
function Perfetto:begin()
  if self.base then return end
  local b, clock = self.bytes, self.target.clock()
  self.base = clock.base + clock.boot
  packet(b, MAIN, CLEARED, function()
    C.proto_uint(b, 87, 1) -- first_packet_on_sequence
    message(b, 6, function()
      local function reading(id, ns)
        message(b, 1, function()
          C.proto_uint(b, 1, id)
          C.proto_uint(b, 2, ns)
        end)
      end
      reading(BOOTTIME, self.base)
      if clock.boot > 0 then reading(MONOTONIC, clock.base) end
      if clock.wall then reading(REALTIME, clock.wall * 1e9) end
      C.proto_uint(b, 2, BOOTTIME)
    end)
  end)
end

--- Writes the descriptor of a track.
---@param uuid number
---@param name? string
---@param write? fun() other fields
function Perfetto:describe(uuid, name, write)
  local b = self.bytes
  self:begin()
  packet(b, MAIN, NEEDS_STATE, function()
    message(b, 60, function()
      C.proto_uint(b, 1, uuid)
      if name then put_text(b, 2, name) end
      if write then write() end
    end)
  end)
end

--- Returns the track of a CPU.
function Perfetto:cpu_track(cpu, member)
  local key = member * MEMBER + cpu + 1
  if not self.cpus[key] then
    local host = member > 0 and self.target.host(member)
    self.cpus[key] = CPU + key
    self:describe(CPU + key, cpu < 0 and 'unknown CPU' or ('CPU %d'):format(cpu), function()
      if host then C.proto_uint(self.bytes, 5, self:host_track(member, host)) end
    end)
  end
  return self.cpus[key]
end

function Perfetto:host_track(member, name)
  if not self.hosts[member] then
    self.hosts[member] = HOST + member
    self:describe(HOST + member, name)
  end
  return HOST + member
end

--- Describes a thread of this machine, and its process at its first thread.
function Perfetto:describe_thread(tid, pid, name)
  local b = self.bytes
  if pid > 0 and not self.processes[pid] then
    self.processes[pid] = true
    self:describe(PROCESS + pid, nil, function()
      message(b, 3, function()
        C.proto_uint(b, 1, pid)
        put_text(b, 6, pid == tid and name or self.target.last_name(pid))
      end)
    end)
  end
  self:describe(THREAD + tid, nil, function()
    message(b, 4, function()
      C.proto_uint(b, 1, pid > 0 and pid or tid)
      C.proto_uint(b, 2, tid)
      put_text(b, 5, name)
    end)
    if pid > 0 then C.proto_uint(b, 5, PROCESS + pid) end
  end)
end

--- Returns the track of a thread at its first event.
function Perfetto:new_thread(e, key, member)
  local tid, name, host = e.tid, self.target.task_name(e), self.target.host(member)
  self.threads[key] = THREAD + key
  if host then
    self:describe(THREAD + key, ('%s %d'):format(name, tid), function()
      C.proto_uint(self.bytes, 5, self:host_track(member, host))
    end)
  else
    self.names[tid] = { pid = e.pid, name = name }
    self:describe_thread(tid, e.pid, name)
  end
  return THREAD + key
end

--- Returns the track of an event.
function Perfetto:track(e)
  local member = exports.member(e)
  if e.tid <= 0 then return self.cpus[member * MEMBER + e.cpu + 1] or self:cpu_track(e.cpu, member) end
  local key = member * MEMBER + e.tid
  return self.threads[key] or self:new_thread(e, key, member)
end

--- Returns the id of an interned string of the main sequence.
---@param known table<string, integer>
---@param field integer of InternedData
function Perfetto:intern(known, field, name)
  if not known[name] then
    known[#known + 1] = name
    known[name] = #known
    local b = self.bytes
    self:begin()
    packet(b, MAIN, NEEDS_STATE, function()
      message(b, 12, function()
        message(b, field, function()
          C.proto_uint(b, 1, known[name])
          put_text(b, 2, name)
        end)
      end)
    end)
  end
  return known[name]
end

function Perfetto:key(name) return self:intern(self.keys, 3, name) end

--- Returns the id of the name of an event or slice, and that of its category.
function Perfetto:name(name, category)
  self.event_names = self.event_names or {}
  return self:intern(self.event_names, 2, name), self:intern(self.categories, 1, category)
end

--- Returns what writes the fields of an event as debug annotations.
function Perfetto:annotations(event)
  local b = self.bytes
  return fields.writer(event, {
    key = function(name) return self:key(name) end,
    int = function(key, value) C.proto_entry(b, 4, key, 4, value) end,
    uint = function(key, value) C.proto_entry(b, 4, key, 3, value) end,
    address = function(key, value) C.proto_entry(b, 4, key, 7, value) end,
    text = function(key, s, size) C.proto_entry_text(b, 4, key, 6, s, size) end,
    list = function(key, values, size, is_signed, count)
      local at = C.proto_open(b, 4)
      C.proto_uint(b, 1, key)
      C.proto_list(b, 12, 3 + is_signed, values, size, is_signed, count)
      C.proto_close(b, at)
    end,
  })
end

--- The id of the flow through an event. A CPU has no two events at the same time.
local function flow_of(time, cpu) return cast('int64_t', time) * 4096LL + (cpu + 1) % 4096 end

-- The tracepoints that Perfetto's own tables are made of: field of FtraceEvent, and fields of its message.
local FTRACE = {
  ['sched:sched_switch'] = { 4, 'prev_comm', 'prev_pid', 'prev_prio', 'prev_state', 'next_comm', 'next_pid',
    'next_prio' },
  ['sched:sched_wakeup'] = { 17, 'comm', 'pid', 'prio', 'success', 'target_cpu' },
  ['sched:sched_wakeup_new'] = { 114, 'comm', 'pid', 'prio', 'success', 'target_cpu' },
  ['sched:sched_waking'] = { 20, 'comm', 'pid', 'prio', 'success', 'target_cpu' },
}

--- Returns what writes an event as ftrace does; nil if Perfetto makes nothing of it.
function Perfetto:ftrace(event)
  local known, b, base = FTRACE[event.name], self.bytes, self.base
  if not known or event.machine then return end
  local payload, code, size = event.view.payload, {}, event.view.size
  for i = 2, #known do
    local name, field = known[i], event.fields[known[i]]
    if field and views.has(field, 'STRING') then
      code[#code + 1] = ('C.proto_text(b, %d, p.%s, strnlen(p.%s, %d))'):format(i - 1, name, name, field.size)
    elseif field then
      code[#code + 1] = ("C.proto_uint(b, %d, cast('int64_t', p.%s))"):format(i - 1, name)
    end
  end
  local put_fields = assert(loadstring(('local C, b, cast, strnlen = ...\nreturn function(p)\n%s\nend'):format(
    table.concat(code, '\n'))))(C, b, cast, libc.strnlen)
  local field = known[1]
  local function put(e)
    local outer = C.proto_open(b, 1)
    C.proto_uint(b, 10, MAIN)
    local bundle = C.proto_open(b, 1)
    C.proto_uint(b, 1, e.cpu)
    local one = C.proto_open(b, 2)
    C.proto_uint(b, 1, base + e.time)
    C.proto_uint(b, 2, e.tid)
    local at = C.proto_open(b, field)
    put_fields(cast(payload, e.raw))
    C.proto_close(b, at)
    C.proto_close(b, one)
    C.proto_close(b, bundle)
    C.proto_close(b, outer)
  end
  return self.switches:of(event, function(switch, _, is_confirmed)
    if not is_confirmed then -- who ran is unknown, which is best shown as idle
      local p = cast(payload, switch.raw)
      p.next_pid = 0
      ffi.fill(p.next_comm, ffi.sizeof(p.next_comm))
    end
    put(switch)
  end) or function(e)
    if e.raw_size >= size then put(e) end
  end
end

function Perfetto:event(event)
  local b = self.bytes
  self:begin()
  local name, category = self:name(event.name, event.system or 'perf')
  local annotations, ftrace = self:annotations(event), self:ftrace(event)
  local cpu_key, has_flow, base = self:key 'cpu', self.target.is_paired(event), self.base
  local of_sequence, of_class = encoded { 10, MAIN, 13, NEEDS_STATE }, encoded { 9, INSTANT, 10, name, 3, category }
  return function(e)
    local track = self:track(e)
    local at = C.proto_open(b, 1)
    C.proto_uint(b, 8, base + e.time)
    C.bytes_put(b, of_sequence, #of_sequence)
    local inner = C.proto_open(b, 11)
    C.bytes_put(b, of_class, #of_class)
    C.proto_uint(b, 11, track)
    if has_flow then C.proto_fixed64(b, 47, flow_of(e.time, e.cpu)) end
    C.proto_entry(b, 4, cpu_key, 4, e.cpu)
    annotations(e)
    C.proto_close(b, inner)
    C.proto_close(b, at)
    if ftrace then ftrace(e) end
  end
end

--- Returns the track of a lane of slices, and describes it at its first slice.
function Perfetto:lane_track(source, lane, group, key)
  if lane.track then return lane.track end
  self.nr_tracks = self.nr_tracks + 1
  lane.track = OTHER + self.nr_tracks
  local parent, name = group, nil
  if lane.key and source.by == 'tid' and self.threads[lane.key] then
    parent, name = self.threads[lane.key], 'pairs'
  elseif lane.key and source.by == 'cpu' and lane.key < MEMBER then
    parent, name = self:cpu_track(lane.key, 0), 'pairs'
  elseif lane.key then
    name = source.key_text(key)
  end
  self:describe(lane.track, name or ('shared %d'):format(lane.number), function()
    C.proto_uint(self.bytes, 5, parent)
  end)
  return lane.track
end

function Perfetto:slice(source)
  local b, find, kinds, group = self.bytes, lanes.new(source.depth), {}, nil
  local of_key = source.has_addresses and POINTER or INTEGER
  local key_name, value_name
  local function new_kind(p)
    if not group then
      self.nr_tracks = self.nr_tracks + 1
      group = OTHER + self.nr_tracks
      self:describe(group, 'pairs by ' .. source.by)
      key_name, value_name = self:key 'key', source.value and self:key(source.value)
    end
    kinds[p.kind] = self:name(source.name(p), 'pairs')
    return kinds[p.kind]
  end
  local function put_event(kind, time, track)
    local at = C.proto_open(b, 1)
    C.proto_uint(b, 8, self.base + time)
    C.proto_uint(b, 10, MAIN)
    C.proto_uint(b, 13, NEEDS_STATE)
    local inner = C.proto_open(b, 11)
    C.proto_uint(b, 9, kind)
    C.proto_uint(b, 11, track)
    return at, inner
  end
  return function(p, second)
    local name = kinds[p.kind] or new_kind(p)
    local lane = find(tonumber(p.key), p.first_time, p.second_time)
    if not lane then return false end
    local track = lane.track or self:lane_track(source, lane, group, p.key)
    local at, inner = put_event(BEGIN, p.first_time, track)
    C.proto_uint(b, 10, name)
    if second then
      C.proto_fixed64(b, 47, flow_of(p.first_time, p.first_cpu))
      C.proto_fixed64(b, 47, flow_of(p.second_time, second.cpu))
    end
    C.proto_entry(b, 4, key_name, of_key, p.key)
    if value_name then C.proto_entry(b, 4, value_name, 4, p.first_value) end
    C.proto_close(b, inner)
    C.proto_close(b, at)
    at, inner = put_event(END, p.second_time, track)
    C.proto_close(b, inner)
    C.proto_close(b, at)
    return true
  end
end

--- Begins a sequence of samples.
function Perfetto:begin_samples(sequence, name)
  local b = self.bytes
  self:begin()
  packet(b, sequence, CLEARED, function()
    C.proto_uint(b, 87, 1)
    message(b, 59, function()
      message(b, 12, function()
        message(b, 1, function()
          C.proto_uint(b, 2, 1)
          put_text(b, 10, name)
        end)
      end)
    end)
  end)
end

--- Writes the parts of a stack that its sequence does not have yet. Must be called within a message InternedData.
local function put_stack(b, known, id, list)
  local function intern(set, field, name, write)
    if not set[name] then
      set.n = set.n + 1
      set[name] = set.n
      message(b, field, function()
        C.proto_uint(b, 1, set.n)
        write()
      end)
    end
    return set[name]
  end
  local ids = {}
  for i = #list, 1, -1 do -- the root first
    local frame = list[i]
    local name, dso = stacks.name(frame), frame.dso or '[unknown]'
    local fn = intern(known.functions, 5, name, function() put_text(b, 2, name) end)
    local path = intern(known.paths, 17, dso, function() put_text(b, 2, dso) end)
    local mapping = intern(known.mappings, 19, dso, function() C.proto_uint(b, 7, path) end)
    local key = ('%d %d %d %s'):format(fn, mapping, frame.offset, frame.source or '')
    ids[#ids + 1] = intern(known.frames, 6, key, function()
      C.proto_uint(b, 2, fn)
      C.proto_uint(b, 3, mapping)
      C.proto_uint(b, 4, frame.offset)
    end)
  end
  message(b, 7, function()
    C.proto_uint(b, 1, known.stacks[id])
    for _, frame in ipairs(ids) do C.proto_uint(b, 2, frame) end
  end)
end

function Perfetto:sample(event)
  local b, sequence, target = self.bytes, event.class, self.target
  local known = { functions = { n = 0 }, paths = { n = 0 }, mappings = { n = 0 }, frames = { n = 0 }, stacks = {} }
  local nr_stacks = 0
  target.before_forget(function() known.stacks = {} end)
  self:begin_samples(sequence, event.name)
  local function new_stack(id)
    nr_stacks = nr_stacks + 1
    known.stacks[id] = nr_stacks
    local list = target.frames.list(id)
    packet(b, sequence, NEEDS_STATE, function()
      message(b, 12, function() put_stack(b, known, id, list) end)
    end)
    return nr_stacks
  end
  local base = self.base
  return function(e, stack)
    self:track(e) -- describes the thread
    local id = known.stacks[stack] or new_stack(stack)
    local at = C.proto_open(b, 1)
    C.proto_uint(b, 8, base + e.time)
    C.proto_uint(b, 10, sequence)
    C.proto_uint(b, 13, NEEDS_STATE)
    local inner = C.proto_open(b, 66)
    if e.cpu >= 0 then C.proto_uint(b, 1, e.cpu) end
    C.proto_uint(b, 2, math.max(e.pid, 0))
    C.proto_uint(b, 3, math.max(e.tid, 0))
    C.proto_uint(b, 4, id)
    C.proto_uint(b, 5, e.chain[1] == CONTEXT_KERNEL and KERNEL or USER)
    C.proto_close(b, inner)
    C.proto_close(b, at)
  end
end

function Perfetto:counter(event, id, title, time, value)
  local b, by_id = self.bytes, self.counters[event.class] or {}
  self.counters[event.class] = by_id
  self:begin()
  if not by_id[id] then
    self.nr_tracks = self.nr_tracks + 1
    by_id[id] = OTHER + self.nr_tracks
    self:describe(by_id[id], ('%s %s %d'):format(event.alias, title, id), function()
      message(b, 8, function()
        if stacks.unit(event) == 'nanoseconds' then C.proto_uint(b, 3, TIME_NS) else put_text(b, 6, event.alias) end
      end)
    end)
  end
  packet(b, MAIN, NEEDS_STATE, function()
    C.proto_uint(b, 8, self.base + time)
    message(b, 11, function()
      C.proto_uint(b, 9, COUNTER)
      C.proto_uint(b, 11, by_id[id])
      C.proto_double(b, 44, value)
    end)
  end)
end

--- A loss is an instant on the track of its CPU, and a number in Perfetto's own statistics.
function Perfetto:lost(e)
  local b, n = self.bytes, tonumber(e.period)
  self:begin()
  local track = self:track(e)
  local name, category = self:name('lost events', 'lost')
  local lost, ns = self:key 'lost', self:key 'ns'
  packet(b, MAIN, NEEDS_STATE, function()
    C.proto_uint(b, 8, self.base + e.time)
    message(b, 11, function()
      C.proto_uint(b, 9, INSTANT)
      C.proto_uint(b, 11, track)
      C.proto_uint(b, 10, name)
      C.proto_uint(b, 3, category)
      C.proto_entry(b, 4, lost, 3, n)
      C.proto_entry(b, 4, ns, 4, tonumber(e.key) - e.time)
    end)
  end)
  if n == 0 or e.cpu < 0 then return end
  if not self.has_losses then
    self.has_losses = true
    self:begin_samples(LOSSES, 'lost')
  end
  packet(b, LOSSES, NEEDS_STATE, function()
    C.proto_uint(b, 8, self.base + e.time)
    message(b, 66, function()
      C.proto_uint(b, 1, e.cpu)
      C.proto_uint(b, 17, n)
    end)
  end)
end

--- Writes the last names of threads that have changed them, such as by execve().
function Perfetto:finish(time)
  self:begin()
  self.switches:finish(time)
  for tid, thread in pairs(self.names) do
    local name = self.target.last_name(tid)
    if name ~= thread.name then self:describe_thread(tid, thread.pid, name) end
  end
end

return perfetto
