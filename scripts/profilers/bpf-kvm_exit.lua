-- SPDX-License-Identifier: GPL-2.0-only
--- VM exit latency, measured by a BPF program that emits one event per exit, at the next entry. Short exits never
--- leave the kernel. Half of this file is the program.
local array = require 'lib.array'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local kvm = require 'lib.kvm'
local tables = require 'lib.table'
local threads = require 'lib.threads'
local failure = require 'lib.failure'

local MAX_ROWS = 4096

local SOURCE = [[
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

struct sched_info {
	unsigned long long run_delay;
} __attribute__((preserve_access_index));
struct task_struct {
	int pid;
	unsigned long nvcsw, nivcsw;
	struct sched_info sched_info;
} __attribute__((preserve_access_index));

struct exit { /* the current exit of a thread; since is 0 while the thread runs its guest */
	__u64 since, run_delay, switches, off_since, off_cpu;
	__u32 reason, isa;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct exit);
} threads SEC(".maps");

struct done {
	__u64 ktime, lat, wait, rundelay;
	__u32 pid, tid, cpu, exit_reason, isa, sw;
};
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
	__type(value, struct done);
} exits SEC(".maps");
__u64 exits_lost;

const volatile __u32 reason_at, isa_at; /* offsets in the tracepoint's record */
const volatile __u64 threshold;

static void read_sched_stats(struct task_struct *task, __u64 *delay, __u64 *switches)
{
	*delay = BPF_CORE_READ(task, sched_info.run_delay);
	*switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

/* Returning 0 from a program on a tracepoint would hide the event from all other tracers. */
SEC("tp/kvm/kvm_exit")
int on_exit(void *ctx)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct exit fresh = {}, *e = bpf_map_lookup_elem(&threads, &tid);

	if (!e) {
		bpf_map_update_elem(&threads, &tid, &fresh, BPF_ANY);
		e = bpf_map_lookup_elem(&threads, &tid);
	}
	if (!e)
		return 1;
	bpf_probe_read_kernel(&e->reason, sizeof(e->reason), ctx + reason_at);
	bpf_probe_read_kernel(&e->isa, sizeof(e->isa), ctx + isa_at);
	read_sched_stats((void *)bpf_get_current_task(), &e->run_delay, &e->switches);
	e->off_cpu = e->off_since = 0;
	e->since = bpf_ktime_get_ns();
	return 1;
}

SEC("tp/kvm/kvm_entry")
int on_entry(void *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(), delay, switches;
	__u32 tid = pid_tgid;
	struct exit *e = bpf_map_lookup_elem(&threads, &tid);
	struct done *d;

	if (!e || !e->since)
		return 1;
	if (now - e->since >= threshold) {
		d = bpf_ringbuf_reserve(&exits, sizeof(*d), 0);
		if (d) {
			read_sched_stats((void *)bpf_get_current_task(), &delay, &switches);
			d->ktime = now;
			d->lat = now - e->since;
			d->rundelay = delay - e->run_delay;
			d->wait = e->off_cpu > d->rundelay ? e->off_cpu - d->rundelay : 0;
			d->pid = pid_tgid >> 32;
			d->tid = tid;
			d->cpu = bpf_get_smp_processor_id();
			d->exit_reason = e->reason;
			d->isa = e->isa;
			d->sw = switches - e->switches;
			bpf_ringbuf_submit(d, 0);
		} else {
			__sync_fetch_and_add(&exits_lost, 1);
		}
	}
	e->since = 0;
	return 1;
}

SEC("raw_tp/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 prev = bpf_get_current_pid_tgid(), next = BPF_CORE_READ((struct task_struct *)ctx->args[2], pid);
	__u64 now = bpf_ktime_get_ns();
	struct exit *e;

	e = prev ? bpf_map_lookup_elem(&threads, &prev) : NULL;
	if (e && e->since)
		e->off_since = now;
	e = next ? bpf_map_lookup_elem(&threads, &next) : NULL;
	if (e && e->since && e->off_since) {
		e->off_cpu += now - e->off_since;
		e->off_since = 0;
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
]]

local LONGEST = tables.new('bpf:kvm_exit-longest', {
  { name = 'pid', title = 'PID' },
  { name = 'comm', title = 'COMM', align = 'left' },
  { name = 'max_ns', title = 'max(us)', width = 12, format = '%.3f', scale = 1000 },
  { name = 'hlt_rundelay_ns', title = 'HLT rundelay(us)', width = 16, format = '%.3f', scale = 1000 },
})

--- The longest exit of each process, for --output2; nil without the option.
local function longest_exits(opt, out, session)
  if not opt.output2 then return nil end
  local file, message = out:open(opt.output2)
  if not file then error('bpf:kvm_exit: ' .. message, 0) end
  local by_pid, rows = {}, {}
  return {
    add = function(pid, ns, delay, halts)
      local row = by_pid[pid]
      if not row then
        row = { pid = pid, max_ns = 0, hlt_rundelay_ns = 0 }
        by_pid[pid], rows[#rows + 1] = row, row
      end
      local column, value = 'max_ns', ns
      if halts then column, value = 'hlt_rundelay_ns', delay end
      row[column] = math.max(row[column], value)
    end,
    report = function()
      for _, row in ipairs(rows) do row.comm = session.task_name(row.pid) end
      table.sort(rows, function(a, b) return a.pid < b.pid end)
      file:table(LONGEST, rows)
      file:flush()
      by_pid, rows = {}, {}
    end,
  }
end

--- Returns the offsets of the fields of kvm:kvm_exit on this kernel.
local function offsets()
  local found = {}
  for _, folder in ipairs { '/sys/kernel/tracing', '/sys/kernel/debug/tracing' } do
    local file = io.open(folder .. '/events/kvm/kvm_exit/format')
    for line in file and file:lines() or function() end do
      local name, offset = line:match 'field:.-([%w_]+);%s*offset:(%d+);'
      if name then found[name] = tonumber(offset) end
    end
    if file then file:close() end
  end
  return found
end

return {
  summary = 'VM exit latency and off-CPU time, measured in BPF',
  description = [[
Measures the time from kvm:kvm_exit to the next kvm:kvm_entry of a thread. Where
kvm-exit reads both events of every exit, here a BPF program emits one event for
each exit that takes at least --threshold.

  wait      the time that the thread slept during the exit
  rundelay  the time that it was runnable and waited for a CPU

Both are in ns in lines and in us in tables. Needs clang, as all scripts with
BPF programs do, and Linux 5.8.]],
  examples = {
    { 'profscript bpf:kvm_exit -i 1000', 'exits of at least 1 ms, of all VMs' },
    { 'profscript bpf:kvm_exit -p 1234 --threshold 0', 'all exits of one VM' },
    { "profscript trace -e 'sched:sched_migrate_task,bpf:kvm_exit/--threshold 100us/'",
      'exits and migrations, in time order' },
  },
  unsupported = { 'event' },
  everywhere = true,
  options = {
    threshold = { type = 'duration', default = '1ms', help = 'drop exits shorter than T in the kernel' },
    than = { type = 'duration', help = 'print exits longer than T; of HLT, those with a longer rundelay' },
    detail = { type = 'flag', help = 'print rows per thread' },
    perins = { type = 'flag', help = 'the same as --detail' },
    output2 = { type = 'string', argument = 'FILE',
      help = 'append the longest exit and the longest rundelay in HLT of each process to FILE' },
  },

  start = function(opt, out, session)
    if opt.input then return nil, 'recordings are not supported: it measures the running kernel' end
    local at = offsets()
    if not at.exit_reason or not at.isa then
      failure.unavailable('bpf:kvm_exit: no event kvm:kvm_exit with exit_reason and isa: '
        .. 'KVM is not loaded, or not x86, or tracefs is not mounted')
    end
    local program = session.bpf {
      source = SOURCE,
      constants = {
        threshold = opt.threshold, reason_at = at.exit_reason, isa_at = at.isa,
      },
    }
    program:attach()
    local keys, hists = intern.new(4, MAX_ROWS), hist.set(MAX_ROWS + 1)
    local waits, delays = array.new(MAX_ROWS + 1), array.new(MAX_ROWS + 1)
    local longest = longest_exits(opt, out, session)
    local than, detail, ours = opt.than or math.huge, opt.detail or opt.perins, threads.new(session, opt)

    local columns = tables.latency_columns(false, {
      { name = 'pid', title = 'PID' },
      { name = 'tid', title = 'THREAD', show = detail or false },
      { name = 'comm', title = 'COMM', align = 'left', show = detail or false },
      { name = 'exit_reason', width = 20, align = 'left' },
    })
    for _, name in ipairs { 'wait', 'rundelay' } do
      columns[#columns + 1] = {
        name = name .. '_ns', title = name .. '(us)', width = 12, format = '%.3f', scale = 1000, metric = 'counter',
      }
    end
    local spec = tables.new('bpf:kvm_exit', columns)

    local function report()
      local rows = {}
      for id = 0, keys:count() - 1 do
        local isa, reason = keys:part(id, 3), keys:part(id, 4)
        local row = tables.latency_row({ pid = keys:part(id, 1), tid = keys:part(id, 2) }, hists:get(id))
        row.exit_reason, row.halts = kvm.exit_reason(isa, reason), kvm.is_halt(isa, reason)
        row.comm = detail and session.task_name(row.tid) or nil
        row.wait_ns, row.rundelay_ns = waits[id], delays[id]
        waits[id], delays[id] = 0, 0
        rows[id + 1] = row
      end
      table.sort(rows, function(a, b)
        if a.halts ~= b.halts then return b.halts end -- last: idle time of the guest
        if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
        if a.pid ~= b.pid then return a.pid < b.pid end
        return a.exit_reason < b.exit_reason
      end)
      for _, row in ipairs(rows) do row.halts = nil end
      out:table(spec, rows)
      hists:clear()
      keys:clear()
      if longest then longest.report() end
    end

    return ours.follow {
      [program:events 'exits'] = function(ev)
        if not ours.has(ev.tid) then return end
        local isa, reason, ns, delay = ev.isa, ev.exit_reason, ev.lat, ev.rundelay
        local id = keys.id(ev.pid, detail and ev.tid or 0, isa, reason)
        hists:add(id, ns)
        waits[id], delays[id] = waits[id] + ev.wait, delays[id] + delay
        if longest then longest.add(ev.pid, tonumber(ns), tonumber(delay), kvm.is_halt(isa, reason)) end
        if (kvm.is_halt(isa, reason) and delay or ns) > than then out:print_event(ev) end
      end,
      describe = function(ev)
        return ('bpf:kvm_exit: %s lat %d wait %d rundelay %d sw %d'):format(kvm.exit_reason(ev.isa, ev.exit_reason),
          ev.lat, ev.wait, ev.rundelay, ev.sw)
      end,
      interval = report,
      stop = report,
    }
  end,
}
