/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common bytes of scheduler events, which the kernel computes when it writes their records.
 */
#pragma once
#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The kernel's struct trace_entry. */
struct head {
	__u16 type;
	__u8 flags, preempt_count;
	__s32 pid;
};

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

static __always_inline __u32 depth(__u32 count)
{
	return count < MAX_DEPTH ? count : MAX_DEPTH;
}

/* Sets the bytes as the kernel does. count: the preempt_count; thread: flags of the current thread;
 * pinned: how often it has disabled migration. These events happen with interrupts disabled, nearly
 * always: a task that wakes up itself need not have disabled them. */
static __always_inline void set_common(struct head *head, __u32 count, unsigned long thread,
				       __u32 pinned)
{
	__u32 flags = TRACE_FLAG_IRQS_OFF;

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
	head->preempt_count = depth(count & PREEMPT) | depth(pinned) << 4;
}
