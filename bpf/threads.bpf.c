// SPDX-License-Identifier: GPL-2.0-only
/* Records scheduler events of marked threads only. A tracepoint filter cannot do that: its numbers
 * are fixed when it is set. A program that returned 0 would hide the event from all tracers. So the
 * programs write the event's record themselves, in the tracepoint's format. New threads are marked
 * at their first wakeup. */
#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

enum {
	NR_MARKS = 1 << 22, /* PIDS_MAX of runtime/os/threads.h */
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

/* How the common bytes are computed; preempt_distance is 0 if they are not. */
const volatile struct {
	__s32 preempt_distance;	     /* from the run queue of a CPU to its preempt_count */
	__u32 resched, resched_lazy; /* bits in the flags of a thread */
} common = {};

/* Of the preempt_count on x86. */
enum {
	PREEMPT = 0xff,
	SOFTIRQ_SERVED = 0x100,
	SOFTIRQ_OFF = 0xfe00,
	HARDIRQ = 0xf0000,
	NMI = 0xf00000,
	NO_RESCHED = 1U << 31
};

enum { MAX_DEPTH = 15 }; /* of preemption and of migration */

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

static __always_inline __u32 depth(__u32 count)
{
	return count < MAX_DEPTH ? count : MAX_DEPTH;
}

/* Fills in the bytes as the kernel does. These events happen with interrupts disabled, nearly
 * always: a task that wakes up itself need not have disabled them. */
static __always_inline void fill_common(struct head *head)
{
	__u32 count = 0, flags = TRACE_FLAG_IRQS_OFF, pinned = 0;
	struct task_struct *task;
	unsigned long thread;
	char *queue;

	if (common.preempt_distance == 0)
		return;
	task = (void *)bpf_get_current_task();
	thread = BPF_CORE_READ(task, thread_info.flags);
	queue = (char *)BPF_CORE_READ(task, se.cfs_rq, rq);
	if (bpf_probe_read_kernel(&count, sizeof(count), queue + common.preempt_distance))
		return;
	if (count & NMI)
		flags |= TRACE_FLAG_NMI;
	if (count & HARDIRQ)
		flags |= TRACE_FLAG_HARDIRQ;
	if (count & SOFTIRQ_SERVED)
		flags |= TRACE_FLAG_SOFTIRQ;
	if (count & SOFTIRQ_OFF &&
	    bpf_core_enum_value_exists(enum trace_flag_type, TRACE_FLAG_BH_OFF))
		flags |= TRACE_FLAG_BH_OFF;
	if (!(count & NO_RESCHED))
		flags |= TRACE_FLAG_PREEMPT_RESCHED;
	if (thread & common.resched)
		flags |= TRACE_FLAG_NEED_RESCHED;
	if (thread & common.resched_lazy)
		flags |= TRACE_FLAG_NEED_RESCHED_LAZY;
	head->flags = flags;
	if (bpf_core_field_exists(task->migration_disabled))
		pinned = BPF_CORE_READ(task, migration_disabled);
	if (pinned > 0)
		pinned--; /* by this program */
	head->preempt_count = depth(count & PREEMPT) | depth(pinned) << 4;
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
