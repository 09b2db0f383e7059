/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The members of kernel structures that the programs read. libbpf looks up their offsets when it
 * loads a program (CO-RE). A structure that changed is declared once per layout, as NAME___LAYOUT;
 * bpf_core_field_exists() tells which layout the kernel has.
 */
#pragma once
#include <linux/types.h>

#define KERNEL __attribute__((preserve_access_index))

/* Tracepoint records, as tracers see them. */
struct trace_event_raw_sched_switch {
	int prev_pid, next_pid;
} KERNEL;

struct trace_event_raw_sched_wakeup_template {
	int pid;
} KERNEL;

struct rq {
	unsigned int nr_running; /* of all classes, including the running task */
} KERNEL;

struct cfs_rq {
	struct rq *rq;
} KERNEL;

struct sched_entity {
	struct cfs_rq *cfs_rq; /* only with CONFIG_FAIR_GROUP_SCHED */
} KERNEL;

struct thread_info {
	unsigned long flags;
	__u32 cpu; /* since Linux 5.16 on all architectures */
} KERNEL;

struct pid;

/* A structure that is one number. */
struct refcount_struct {
	struct {
		int counter;
	} refs;
} KERNEL;

struct signal_struct {
	struct pid *pids[2]; /* of the thread and of the process */
} KERNEL;

/* Bits of common_flags. */
enum trace_flag_type {
	TRACE_FLAG_IRQS_OFF = 0x01,
	TRACE_FLAG_NEED_RESCHED_LAZY = 0x02,
	TRACE_FLAG_NEED_RESCHED = 0x04,
	TRACE_FLAG_HARDIRQ = 0x08,
	TRACE_FLAG_SOFTIRQ = 0x10,
	TRACE_FLAG_PREEMPT_RESCHED = 0x20,
	TRACE_FLAG_NMI = 0x40,
	TRACE_FLAG_BH_OFF = 0x80
};

struct task_struct {
	struct thread_info thread_info; /* only with CONFIG_THREAD_INFO_IN_TASK */
	struct sched_entity se;
	unsigned int policy;
	int prio;
	unsigned short migration_disabled; /* only with CONFIG_SMP */
	int pid;			   /* the thread */
	int tgid;
	struct signal_struct *signal;
	unsigned int __state;
	int exit_state;
	char comm[16];
} KERNEL;

struct task_struct___before_5_14 {
	long state;
} KERNEL;
