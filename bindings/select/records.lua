-- SPDX-License-Identifier: GPL-2.0-only
--- What the kernel reports besides samples, as events `misc:NAME`: code that it got, BPF programs, cgroups,
--- namespaces, and what happens to tasks. runtime/decode/records.h has their fields.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'

local C = ffi.C
local records = {}

--- The system that these events are of.
records.SYSTEM = 'misc'

-- Attributes that have no meaning here.
local OF_SAMPLES = { period = true, freq = true, stack = true, ['max-stack'] = true }

local DUMMY = perf_events.find 'dummy' -- the event that reports them

-- C type of a member: its size and flags. A text is a word as __data_loc has it.
local TYPES = {
  u16 = { 2, 0 }, u32 = { 4, 0 }, u64 = { 8, 0 }, s32 = { 4, C.FIELD_SIGNED }, pid_t = { 4, C.FIELD_SIGNED },
  pointer = { 8, C.FIELD_POINTER }, text = { 4, C.FIELD_ARRAY + C.FIELD_DYNAMIC + C.FIELD_STRING },
}

local TASK = 'pid_t pid, pid_t ppid, pid_t tid, pid_t ptid'
local KSYM = '__print_symbolic(REC->ksym_type, { 1, "bpf" }, { 2, "ool" })'

-- The fields of each kind, as records.h has them, and how they are printed.
local KINDS = {
  ksymbol = {
    kind = C.RECORD_KSYMBOL, struct = 'struct record_ksymbol', help = 'the kernel got code, or gave it up',
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
    kind = C.RECORD_CGROUP, struct = 'struct record_cgroup', help = 'a cgroup was made',
    fields = 'u64 id, text path',
    print = '"id %lu %s", REC->id, __get_str(path)',
  },
  text_poke = {
    kind = C.RECORD_TEXT_POKE, struct = 'struct record_text_poke', help = 'the kernel changed its code',
    fields = 'pointer addr, u16 old_len, u16 new_len, text old_bytes, text new_bytes',
    print = '"%lx %s => %s %pS", REC->addr, __get_str(old_bytes), __get_str(new_bytes), (void *)REC->addr',
  },
  namespaces = {
    kind = C.RECORD_NAMESPACES, struct = 'struct record_namespaces', help = 'a task has other namespaces, or began',
    fields = 'pid_t pid, pid_t tid, u64 nr, u64 net_dev, u64 net, u64 uts_dev, u64 uts, u64 ipc_dev, u64 ipc,'
      .. ' u64 pid_dev, u64 pid_ns, u64 user_dev, u64 user, u64 mnt_dev, u64 mnt, u64 cgroup_dev, u64 cgroup',
    print = '"pid %d/%d net %lu uts %lu ipc %lu pid %lu user %lu mnt %lu cgroup %lu", REC->pid, REC->tid, REC->net,'
      .. ' REC->uts, REC->ipc, REC->pid_ns, REC->user, REC->mnt, REC->cgroup',
  },
  comm = {
    kind = C.RECORD_COMM, struct = 'struct record_comm', help = 'a task got a name',
    fields = 'pid_t pid, pid_t tid, text comm, u32 exec',
    print = '"%s %d/%d%s", __get_str(comm), REC->pid, REC->tid, REC->exec ? " exec" : ""',
  },
  fork = {
    kind = C.RECORD_FORK, struct = 'struct record_task', help = 'a task began',
    fields = TASK, print = '"%d/%d by %d/%d", REC->pid, REC->tid, REC->ppid, REC->ptid',
  },
  exit = {
    kind = C.RECORD_EXIT, struct = 'struct record_task', help = 'a task ended',
    fields = TASK, print = '"%d/%d of %d/%d", REC->pid, REC->tid, REC->ppid, REC->ptid',
  },
  mmap = {
    kind = C.RECORD_MMAP, struct = 'struct record_mmap', help = 'a task mapped code',
    fields = 'pid_t pid, pid_t tid, pointer addr, u64 len, u64 pgoff, text filename',
    print = '"%d/%d %lx/%lx @ %lx %s", REC->pid, REC->tid, REC->addr, REC->len, REC->pgoff, __get_str(filename)',
  },
}

--- The names of these events, with their system, sorted.
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

--- What makes an event of records, for bindings/select/events.lua.
---@param full string "misc:NAME"
---@return table? nil: there is no such event
function records.find(full)
  local kind = KINDS[full:match('^' .. records.SYSTEM .. ':(.+)$') or '']
  return kind and {
    type = DUMMY.type, config = DUMMY.config, system = records.SYSTEM, record = kind.kind, help = kind.help,
    list = field_list(kind), print_fmt = kind.print,
  }
end

--- The names of its fields, in their order.
---@param event table that find() gave
---@return string[]
function records.field_names(event)
  local names = {}
  for i, field in ipairs(event.list) do names[i] = field.name end
  return names
end

--- Adds such an event.
---@param set table see bindings/select/events.lua
---@param full string "SYSTEM:NAME"
---@return Event? nil: it is of another system
function records.add(set, full, parsed, group, params)
  local request = records.find(full)
  if not request then
    if not full:find('^' .. records.SYSTEM .. ':') then return nil end
    failure.usage("no event '%s'%s", full, nearest.hint(full, records.names))
  end
  if not set.catalog.has_record(request.record) then
    if set.is_recording then failure.raise('the recording has no %s', full) end
    failure.unavailable('this kernel has no %s', full)
  end
  for _, attr in ipairs(parsed and parsed.attrs or {}) do
    if OF_SAMPLES[attr.name] then
      failure.usage("%s: '%s' is for events that are sampled: the kernel tells of each of these, without a stack", full,
        attr.name)
    end
  end
  return set:add(full, request, parsed, group, params)
end

return records
