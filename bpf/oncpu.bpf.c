// SPDX-License-Identifier: GPL-2.0-only
/* Adds up how long each task runs on each CPU. There are two maps of sums, so that one can be read
 * while the other is written. settle() runs on each CPU when an interval ends: it adds what has run
 * there until now, and the CPU continues in the other map. A CPU takes part from its first
 * settle(). */
#include "targets.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

enum { NR_PRIOS = 140, NAME = 16, MAX_ROWS = 65536 };

const volatile __u8 only_comm = 0;
const volatile __u8 has_prio = 0;
const volatile __u8 prio[NR_PRIOS] = {};

struct row {
	__u32 cpu, tid;
	char comm[NAME]; /* with only_comm, and then tid is 0 */
};

struct sum {
	__u64 ns, runs, longest;
};

struct sums {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_ROWS);
	__type(key, struct row);
	__type(value, struct sum);
} sums_0 SEC(".maps"), sums_1 SEC(".maps");

struct cpu {
	__u64 since;	/* 0: never settled */
	__u32 tid;	/* of who runs */
	__u8 is_wanted; /* has one of the priorities */
	__u8 side;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

__u8 side;	  /* of the map that CPUs continue in at their next settle() */
__u64 unreported; /* switches */
__u64 left_out;	  /* ns of tasks beyond MAX_ROWS */

static __always_inline bool is_wanted(const struct task_struct *task)
{
	__u32 number = BPF_CORE_READ(task, prio);

	return !has_prio || (number < NR_PRIOS && prio[number]);
}

static __always_inline void add(const struct cpu *c, const struct task_struct *task, __u64 now,
				bool is_complete)
{
	struct row row = {.cpu = bpf_get_smp_processor_id()};
	void *map = c->side ? (void *)&sums_1 : (void *)&sums_0;
	__u64 since = c->since, ns;
	struct sum none = {}, *sum;

	if (has_targets) {
		if (!is_target(c->tid))
			return;
		if (since < begun)
			since = begun;
		if (now > ended)
			now = ended;
		if (now <= since)
			return;
	}
	ns = now - since;
	if (only_comm)
		bpf_core_read_str(row.comm, sizeof(row.comm), &task->comm);
	else
		row.tid = c->tid;
	sum = bpf_map_lookup_elem(map, &row);
	if (!sum) {
		bpf_map_update_elem(map, &row, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(map, &row);
	}
	if (!sum) {
		__sync_fetch_and_add(&left_out, ns);
		return;
	}
	sum->ns += ns;
	sum->runs += is_complete;
	if (ns > sum->longest)
		sum->longest = ns;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0;
	struct cpu *c = bpf_map_lookup_elem(&cpus, &zero);

	if (!c || !c->since)
		return 0;
	if (c->tid != prev->pid) {
		if (is_target(c->tid) || is_target(prev->pid))
			__sync_fetch_and_add(&unreported, 1);
	} else if (c->tid && c->is_wanted && is_wanted(prev))
		add(c, prev, now, true);
	c->tid = next->pid;
	c->is_wanted = is_wanted(next);
	c->since = now;
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_new, struct task_struct *task)
{
	on_new_thread(task->pid);
	return 0;
}

SEC("raw_tp")
int settle(void *ctx)
{
	const struct task_struct *task = (void *)bpf_get_current_task();
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0, tid = BPF_CORE_READ(task, pid);
	struct cpu *c = bpf_map_lookup_elem(&cpus, &zero);

	if (!c)
		return 0;
	if (!c->since) {
		c->tid = tid;
		c->is_wanted = is_wanted(task);
		c->since = now;
	} else if (c->tid == tid) {
		if (tid && c->is_wanted)
			add(c, task, now, false);
		c->since = now;
	}
	c->side = side;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
