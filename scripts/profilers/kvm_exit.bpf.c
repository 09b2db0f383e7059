// SPDX-License-Identifier: GPL-2.0-only
/* bpf:kvm_exit: each exit of a thread, sent at the next entry, with the time off the CPU. */
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
	__u32 prev = bpf_get_current_pid_tgid(),
	      next = BPF_CORE_READ((struct task_struct *)ctx->args[2], pid);
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
