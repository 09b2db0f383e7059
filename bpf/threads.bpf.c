// SPDX-License-Identifier: GPL-2.0-only
/* Passes on the events of the scheduler that are about some threads, and nothing of the others: a
 * filter of a tracepoint knows only numbers that were given to it beforehand, and a program's
 * answer 0 would hide the event from all tracers. So the program writes the event's record itself,
 * as it is in the format; of what the kernel puts before the fields only type and pid are known
 * here. New threads are marked when they are woken for the first time. */
#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

enum {
	NR_MARKS = 1 << 22, /* PIDS_MAX of runtime/os/threads.h */
	MAX_RECORD = 128
};

/* What trace_entry is in memory. */
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

__u8 marks[NR_MARKS]; /* by thread; those that were named are marked before the events start */

struct array {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} switches SEC(".maps"), wakeups SEC(".maps"), new_wakeups SEC(".maps");

static __always_inline __u8 mark_of(__u32 tid)
{
	barrier_var(tid); /* what is compared is what the verifier sees used */
	return tid < NR_MARKS ? marks[tid] : 0;
}

static __always_inline void pass_on(void *ctx, void *array, const volatile struct kind *kind)
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
		pass_on(ctx, &switches, &sched_switch);
	return 1;
}

SEC("tracepoint/sched/sched_wakeup")
int on_wakeup(struct trace_event_raw_sched_wakeup_template *ctx)
{
	if (mark_of(ctx->pid))
		pass_on(ctx, &wakeups, &sched_wakeup);
	return 1;
}

/* It is the parent that wakes a new task for the first time, also where no fork is traced: of
 * threads that the kernel makes for a program. A number that was that of one of ours may no longer
 * be. */
SEC("tracepoint/sched/sched_wakeup_new")
int on_wakeup_new(struct trace_event_raw_sched_wakeup_template *ctx)
{
	__u32 tid = ctx->pid, parent = bpf_get_current_pid_tgid();
	__u8 was = mark_of(tid), is = inherits && mark_of(parent);

	if (tid < NR_MARKS && was != is)
		marks[tid] = is;
	if (was || is)
		pass_on(ctx, &new_wakeups, &sched_wakeup_new);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
