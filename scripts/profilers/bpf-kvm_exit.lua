-- SPDX-License-Identifier: GPL-2.0-only
--- How long the exits of virtual machines take, each one event that a BPF program makes at the next entry:
--- what is short never leaves the kernel. Half of this file is that program.
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

struct exit { /* what is known of a thread since it left its guest; since 0: it is in there */
	__u64 since, run_delay, switches, out_since, out;
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

static void account(struct task_struct *task, __u64 *delay, __u64 *switches)
{
	*delay = BPF_CORE_READ(task, sched_info.run_delay);
	*switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

/* A program must return 1, or nobody else sees the event. */
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
	account((void *)bpf_get_current_task(), &e->run_delay, &e->switches);
	e->out = e->out_since = 0;
	e->since = bpf_ktime_get_ns();
	return 1;
}

SEC("tp/kvm/kvm_entry")
int on_entry(void *ctx)
{
	__u64 both = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(), delay, switches;
	__u32 tid = both;
	struct exit *e = bpf_map_lookup_elem(&threads, &tid);
	struct done *d;

	if (!e || !e->since)
		return 1;
	if (now - e->since >= threshold) {
		d = bpf_ringbuf_reserve(&exits, sizeof(*d), 0);
		if (d) {
			account((void *)bpf_get_current_task(), &delay, &switches);
			d->ktime = now;
			d->lat = now - e->since;
			d->rundelay = delay - e->run_delay;
			d->wait = e->out > d->rundelay ? e->out - d->rundelay : 0;
			d->pid = both >> 32;
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
		e->out_since = now;
	e = next ? bpf_map_lookup_elem(&threads, &next) : NULL;
	if (e && e->since && e->out_since) {
		e->out += now - e->out_since;
		e->out_since = 0;
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

--- The longest exits of processes, for --output2; nil where it is not asked for.
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

--- Where the fields of kvm:kvm_exit are, in this kernel.
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
  summary = 'How long exits of virtual machines take, and what of it they wait, measured in BPF',
  description = [[
The time from kvm:kvm_exit to the next kvm:kvm_entry of a thread. Where kvm-exit reads both events, a BPF program makes
one of those that take at least --threshold. WAIT is how much of it the thread slept, RUNDELAY how much it could
run and had no CPU (ns in lines, us in tables). Needs clang, as BPF programs of scripts do, and kernel 5.8.]],
  examples = {
    { 'profscript bpf:kvm_exit -i 1000', 'exits of 1 ms and more, of all machines' },
    { 'profscript bpf:kvm_exit -p 1234 --threshold 0', 'all exits of one' },
    { "profscript trace -e 'sched:sched_migrate_task,bpf:kvm_exit/--threshold 100us/'",
      'each as an event among others' },
  },
  unsupported = { 'event' },
  everywhere = true,
  options = {
    threshold = { type = 'duration', default = '1ms', help = 'leave shorter exits in the kernel' },
    than = { type = 'duration', help = 'print longer exits, but for HLT, where it is the time without a CPU' },
    detail = { type = 'flag', help = 'rows for each thread' },
    output2 = { type = 'string', argument = 'FILE',
      help = 'append the longest exit of each process, and the longest time without a CPU in HLT, to FILE' },
  },

  start = function(opt, out, session)
    if opt.input then return nil, 'it measures the running kernel, not recordings' end
    local at = offsets()
    if not at.exit_reason or not at.isa then
      failure.unavailable 'bpf:kvm_exit: no kvm:kvm_exit with exit_reason and isa: KVM is not loaded, or not of x86'
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
    local than, detail, ours = opt.than or math.huge, opt.detail, threads.new(session, opt)

    local columns = {
      { name = 'pid', title = 'PID' },
      { name = 'tid', title = 'THREAD', show = detail or false },
      { name = 'comm', title = 'COMM', align = 'left', show = detail or false },
      { name = 'exit_reason', width = 20, align = 'left' },
    }
    for _, column in ipairs(tables.latency_columns()) do columns[#columns + 1] = column end
    for _, name in ipairs { 'wait', 'rundelay' } do
      columns[#columns + 1] = {
        name = name .. '_ns', title = name .. '(us)', width = 12, format = '%.3f', scale = 1000,
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
        if a.halts ~= b.halts then return b.halts end -- the time of a guest that has nothing to do
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
