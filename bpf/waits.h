/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits that took too long are sent, with the events at their start and end as perf would have
 * reported them. Each thread has a place for the event at which its state began. The event that
 * ends a wait is written to the ring that perf would have written it to, followed by the wait and
 * by the first event (bpf/gen/sent_waits.lua).
 */
#pragma once
#include "common_bytes.h"
#include <linux/errno.h>

const volatile __u8 sends_waits = 0;
const volatile __u64 than = 0;		 /* ns: those that took longer */
const volatile __u8 has_all_threads = 0; /* there is a place for each thread id */

/* The types of events, which the kernel knows when it has them. */
__u16 switch_type, wakeup_type, new_type;

/* The records are those of the tracepoints. */
struct switch_record {
	struct head head;
	char prev_comm[16];
	__s32 prev_pid, prev_prio;
	__s64 prev_state;
	char next_comm[16];
	__s32 next_pid, next_prio;
};

struct wakeup_record {
	struct head head;
	char comm[16];
	__s32 pid, prio, target_cpu;
};

union record {
	struct switch_record switched;
	struct wakeup_record woken;
	__u64 words[8];
};

enum kind { NO_EVENT, SWITCH, WAKEUP, NEW };

struct first_event {
	__u16 kind, cpu;
	__s32 pid; /* of the current process */
	union record record;
};

struct wait {
	union record last;
	__u64 ns;
	__u32 tid, state;
	struct first_event first; /* NO_EVENT: it is not known */
};

struct kept {
	__u64 word; /* of the state that the event has begun */
	struct first_event event;
};

/* One of the two has a place for each thread. They are made larger where they are needed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept);
} kept_by_tid SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept);
} kept_by_hash SEC(".maps");

/* Rings of perf, by the event that ends a wait. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} switches SEC(".maps"), wakeups SEC(".maps");

__u64 unkept; /* events for which there was no place */

typedef __u64 __attribute__((may_alias)) aliased;

static __always_inline void copy_comm(char *to, const struct task_struct *task)
{
	const aliased *from = (const aliased *)task->comm;

	((aliased *)to)[0] = from[0];
	((aliased *)to)[1] = from[1];
}

/* Lets a program read memory without a call, which takes 60 ns. Since Linux 6.2. */
extern void *bpf_rdonly_cast(const void *from, __u32 btf_id) __ksym __weak;

static __always_inline __u32 preempt_count(const struct task_struct *task)
{
	const char *at = (const char *)task->se.cfs_rq->rq + common.preempt_distance;
	__u32 count = 0;

	if (bpf_rdonly_cast)
		return *(const __u32 *)bpf_rdonly_cast(
			at, bpf_core_type_id_kernel(struct refcount_struct));
	bpf_probe_read_kernel(&count, sizeof(count), at);
	return count;
}

static __always_inline void write_head(struct head *head, __u16 type)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	*head = (struct head){.type = type, .pid = task->pid};
	set_common(head, preempt_count(task), task->thread_info.flags, task->migration_disabled);
}

static __always_inline void write_switch(union record *record, const struct task_struct *prev,
					 const struct task_struct *next, __u64 prev_state)
{
	struct switch_record *to = &record->switched;

	write_head(&to->head, switch_type);
	copy_comm(to->prev_comm, prev);
	to->prev_pid = prev->pid;
	to->prev_prio = prev->prio;
	to->prev_state = prev_state;
	copy_comm(to->next_comm, next);
	to->next_pid = next->pid;
	to->next_prio = next->prio;
}

static __always_inline void write_wakeup(union record *record, __u16 type,
					 const struct task_struct *task)
{
	struct wakeup_record *to = &record->woken;

	__builtin_memset(record, 0, sizeof(*record));
	write_head(&to->head, type);
	copy_comm(to->comm, task);
	to->pid = task->pid;
	to->prio = task->prio;
	to->target_cpu = task->thread_info.cpu;
}

static __always_inline struct kept *kept_of(__u32 tid)
{
	if (has_all_threads)
		return bpf_map_lookup_elem(&kept_by_tid, &tid);
	return bpf_map_lookup_elem(&kept_by_hash, &tid);
}

static const struct kept no_event = {};

/* Keeps the event that has begun a state of a thread. */
static __always_inline void keep(__u32 tid, __u64 word, enum kind kind, const union record *record)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	struct kept *kept = kept_of(tid);

	if (!kept && !has_all_threads) {
		bpf_map_update_elem(&kept_by_hash, &tid, &no_event, BPF_NOEXIST);
		kept = kept_of(tid);
	}
	if (!kept) {
		__sync_fetch_and_add(&unkept, 1);
		return;
	}
	kept->word = word;
	kept->event.kind = kind;
	kept->event.cpu = bpf_get_smp_processor_id();
	/* As perf: the process may have been reaped. */
	kept->event.pid = task->signal->pids[1] ? task->tgid : -1;
	kept->event.record = *record;
}

static __always_inline void forget(__u32 tid)
{
	if (!has_all_threads)
		bpf_map_delete_elem(&kept_by_hash, &tid);
}

/* Sends a wait whose last event has been written. Returns false if the run has ended. A wait for
 * which the ring has no room is lost: the kernel counts that. */
static __always_inline bool send_wait(void *ctx, enum kind kind, struct wait *wait, __u32 tid,
				      __u32 state, __u64 word, __u64 ns)
{
	void *ring = kind == SWITCH ? (void *)&switches : (void *)&wakeups;
	struct kept *kept = kept_of(tid);
	long err;

	wait->ns = ns;
	wait->tid = tid;
	wait->state = state;
	if (kept && kept->word == word)
		wait->first = kept->event;
	else
		__builtin_memset(&wait->first, 0, sizeof(wait->first));
	err = bpf_perf_event_output(ctx, ring, BPF_F_CURRENT_CPU, wait, sizeof(*wait));
	return !err || err == -ENOSPC;
}
