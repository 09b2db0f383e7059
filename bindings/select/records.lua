-- SPDX-License-Identifier: GPL-2.0-only
--- Records: the kernel's reports other than samples, as events `misc:NAME`: new kernel code, BPF programs, cgroups,
--- namespaces and task changes. Their fields are in runtime/decode/records.h.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'

local C = ffi.C
local records = {}

--- The system of these events.
records.SYSTEM = 'misc'

-- Attributes that only apply to samples.
local OF_SAMPLES = { period = true, freq = true, stack = true, ['max-stack'] = true }

local DUMMY = perf_events.find 'dummy' -- the event that enables these records

-- C type of a member: its size and flags. A text is a __data_loc word.
local TYPES = {
  u16 = { 2, 0 }, u32 = { 4, 0 }, u64 = { 8, 0 }, s32 = { 4, C.FIELD_SIGNED }, pid_t = { 4, C.FIELD_SIGNED },
  pointer = { 8, C.FIELD_POINTER }, text = { 4, C.FIELD_ARRAY + C.FIELD_DYNAMIC + C.FIELD_STRING },
}

local TASK = 'pid_t pid, pid_t ppid, pid_t tid, pid_t ptid'
local KSYM = '__print_symbolic(REC->ksym_type, { 1, "bpf" }, { 2, "ool" })'

-- The fields of each kind, as in records.h, and their print format.
local KINDS = {
  ksymbol = {
    kind = C.RECORD_KSYMBOL, struct = 'struct record_ksymbol', help = 'kernel code was added or removed',
    fields = 'pointer addr, u32 len, u16 ksym_type, u16 flags, text name',
    print = '"%s %s %lx/%u %s", ' .. KSYM .. ', REC->flags & 1 ? "unreg" : "reg", REC->addr, REC->len, __get_str(name)',
  },
  bpf_event = {
    kind = C.RECORD_BPF_EVENT, struct = 'struct record_bpf_event', help = 'a BPF program was loaded or unloaded',
    fields = 'u16 type, u16 flags, u32 id, text tag',
    print = '"prog %s id %u tag %s", __print_symbolic(REC->type, { 1, "load" }, { 2, "unload" }), REC->id,'
      .. ' __get_str(tag)',
  },
  cgroup = {
    kind = C.RECORD_CGROUP, struct = 'struct record_cgroup', help = 'a cgroup was created',
    fields = 'u64 id, text path',
    print = '"id %lu %s", REC->id, __get_str(path)',
  },
  text_poke = {
    kind = C.RECORD_TEXT_POKE, struct = 'struct record_text_poke', help = 'the kernel changed its code',
    fields = 'pointer addr, u16 old_len, u16 new_len, text old_bytes, text new_bytes',
    print = '"%lx %s => %s %pS", REC->addr, __get_str(old_bytes), __get_str(new_bytes), (void *)REC->addr',
  },
  namespaces = {
    kind = C.RECORD_NAMESPACES, struct = 'struct record_namespaces', help = 'a task started or changed its namespaces',
    fields = 'pid_t pid, pid_t tid, u64 nr, u64 net_dev, u64 net, u64 uts_dev, u64 uts, u64 ipc_dev, u64 ipc,'
      .. ' u64 pid_dev, u64 pid_ns, u64 user_dev, u64 user, u64 mnt_dev, u64 mnt, u64 cgroup_dev, u64 cgroup',
    print = '"pid %d/%d net %lu uts %lu ipc %lu pid %lu user %lu mnt %lu cgroup %lu", REC->pid, REC->tid, REC->net,'
      .. ' REC->uts, REC->ipc, REC->pid_ns, REC->user, REC->mnt, REC->cgroup',
  },
  comm = {
    kind = C.RECORD_COMM, struct = 'struct record_comm', help = 'a task changed its name',
    fields = 'pid_t pid, pid_t tid, text comm, u32 exec',
    print = '"%s %d/%d%s", __get_str(comm), REC->pid, REC->tid, REC->exec ? " exec" : ""',
  },
  fork = {
    kind = C.RECORD_FORK, struct = 'struct record_task', help = 'a task was created',
    fields = TASK, print = '"%d/%d by %d/%d", REC->pid, REC->tid, REC->ppid, REC->ptid',
  },
  exit = {
    kind = C.RECORD_EXIT, struct = 'struct record_task', help = 'a task exited',
    fields = TASK, print = '"%d/%d of %d/%d", REC->pid, REC->tid, REC->ppid, REC->ptid',
  },
  mmap = {
    kind = C.RECORD_MMAP, struct = 'struct record_mmap', help = 'a task mapped executable memory',
    fields = 'pid_t pid, pid_t tid, pointer addr, u64 len, u64 pgoff, text filename',
    print = '"%d/%d %lx/%lx @ %lx %s", REC->pid, REC->tid, REC->addr, REC->len, REC->pgoff, __get_str(filename)',
  },
}

--- The full names of these events, sorted.
records.names = {}
for _, name in ipairs(nearest.keys(KINDS)) do records.names[#records.names + 1] = records.SYSTEM .. ':' .. name end

local function field_list(kind)
  local list = {}
  for type, name in kind.fields:gmatch '([%w_]+) ([%w_]+)' do
    local size, flags = unpack(TYPES[type])
    local is_text = type == 'text'
    list[#list + 1] = {
      name = name, type = is_text and '__data_loc char[]' or type == 'pointer' and 'void *' or type,
      offset = ffi.offsetof(kind.struct, name), size = size, elem_size = is_text and 1 or size,
      count = is_text and 0 or 1, flags = flags,
    }
  end
  return list
end

--- Finds the event for a kind of records, as events:add() takes it.
---@param full string "misc:NAME"
---@return table? event nil if there is no such event
function records.find(full)
  local kind = KINDS[full:match('^' .. records.SYSTEM .. ':(.+)$') or '']
  return kind and {
    type = DUMMY.type, config = DUMMY.config, system = records.SYSTEM, record = kind.kind, help = kind.help,
    list = field_list(kind), print_fmt = kind.print,
  }
end

--- Returns the names of the fields, in order.
---@param event table from find()
---@return string[]
function records.field_names(event)
  local names = {}
  for i, field in ipairs(event.list) do names[i] = field.name end
  return names
end

--- Adds an event for records to the set.
---@param set table see bindings/select/events.lua
---@param full string "SYSTEM:NAME"
---@return Event? event nil if the name belongs to another system
function records.add(set, full, parsed, params)
  local request = records.find(full)
  if not request then
    if not full:find('^' .. records.SYSTEM .. ':') then return nil end
    failure.usage("no such event '%s'%s", full, nearest.hint(full, records.names))
  end
  if not set.catalog.has_record(request.record) then
    if set.is_recording then failure.raise('the recording contains no %s records', full) end
    failure.unavailable('this kernel has no %s records', full)
  end
  for _, attr in ipairs(parsed and parsed.attrs or {}) do
    if OF_SAMPLES[attr.name] then
      failure.usage("%s: attribute '%s' applies to sampled events only", full, attr.name)
    end
  end
  return set:add(full, request, parsed, params)
end

return records
