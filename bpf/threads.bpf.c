// SPDX-License-Identifier: GPL-2.0-only
/* Records scheduler events of marked threads only. A tracepoint filter cannot do that: its numbers
 * are fixed when it is set. A program that returned 0 would hide the event from all tracers. So the
 * programs write the event's record themselves, in the tracepoint's format. New threads are marked
 * at their first wakeup. */
#include "common_bytes.h"

enum {
	NR_MARKS = 1 << 22, /* PIDS_MAX of runtime/os/threads.h */
	MAX_RECORD = 128
};

struct kind {
	__u16 type;
	__u16 size; /* of its record */
};

const volatile struct kind sched_switch = {}, sched_wakeup = {}, sched_wakeup_new = {};
const volatile __u8 inherits = 0;

__u8 marks[NR_MARKS]; /* by tid; the target threads are marked before the events start */

struct array {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} switches SEC(".maps"), wakeups SEC(".maps"), new_wakeups SEC(".maps");

static __always_inline __u8 mark_of(__u32 tid)
{
	barrier_var(
		tid); /* makes the compiler compare and use the same register, for the verifier */
	return tid < NR_MARKS ? marks[tid] : 0;
}

static __always_inline void fill_common(struct head *head)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 count = 0, pinned = 0;
	char *queue;

	if (common.preempt_distance == 0)
		return;
	queue = (char *)BPF_CORE_READ(task, se.cfs_rq, rq);
	if (bpf_probe_read_kernel(&count, sizeof(count), queue + common.preempt_distance))
		return;
	if (bpf_core_field_exists(task->migration_disabled))
		pinned = BPF_CORE_READ(task, migration_disabled);
	if (pinned > 0)
		pinned--; /* by this program */
	set_common(head, count, BPF_CORE_READ(task, thread_info.flags), pinned);
}

static __always_inline void write_record(void *ctx, void *array, const volatile struct kind *kind)
{
	union {
		__u8 bytes[MAX_RECORD];
		struct head head;
	} record;
	__u32 size = kind->size;

	if (size < sizeof(record.head) || size > MAX_RECORD ||
	    bpf_probe_read_kernel(record.bytes, size, ctx))
		return;
	record.head = (struct head){.type = kind->type, .pid = (__u32)bpf_get_current_pid_tgid()};
	fill_common(&record.head);
	bpf_perf_event_output(ctx, array, BPF_F_CURRENT_CPU, record.bytes, size);
}

SEC("tracepoint/sched/sched_switch")
int on_switch(struct trace_event_raw_sched_switch *ctx)
{
	if (mark_of(ctx->prev_pid) || mark_of(ctx->next_pid))
		write_record(ctx, &switches, &sched_switch);
	return 1;
}

SEC("tracepoint/sched/sched_wakeup")
int on_wakeup(struct trace_event_raw_sched_wakeup_template *ctx)
{
	if (mark_of(ctx->pid))
		write_record(ctx, &wakeups, &sched_wakeup);
	return 1;
}

/* The first wakeup of a new task is by its parent, also for threads that the kernel creates for a
 * program without a fork event. A reused tid may no longer belong to a target. */
SEC("tracepoint/sched/sched_wakeup_new")
int on_wakeup_new(struct trace_event_raw_sched_wakeup_template *ctx)
{
	__u32 tid = ctx->pid, parent = bpf_get_current_pid_tgid();
	__u8 was = mark_of(tid), is = inherits && mark_of(parent);

	if (tid < NR_MARKS && was != is)
		marks[tid] = is;
	if (was || is)
		write_record(ctx, &new_wakeups, &sched_wakeup_new);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
