// SPDX-License-Identifier: GPL-2.0-only
/* Records scheduler events of marked threads only. A tracepoint filter cannot do that: its numbers
 * are fixed when it is set. A program that returned 0 would hide the event from all tracers. So the
 * programs write the event's record themselves, in the tracepoint's format; of the common fields
 * only type and pid are known here. New threads are marked at their first wakeup. */
#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

enum {
	NR_MARKS = 1 << 22, /* the kernel's largest pid_max */
	MAX_RECORD = 128
};

/* The kernel's struct trace_entry. */
struct head {
	__u16 type;
	__u8 flags, preempt_count;
	__s32 pid;
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
