/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs read of the kernel's structures, and no more: libbpf looks up where each field
 * is when it loads a program (CO-RE). A structure that has changed is declared once for each shape,
 * as NAME___SHAPE; bpf_core_field_exists() tells which one the kernel has.
 */
#pragma once
#include <linux/types.h>

#define KERNEL __attribute__((preserve_access_index))

/* Records of tracepoints, which tracers see too. */
struct trace_event_raw_sched_switch {
	int prev_pid, next_pid;
} KERNEL;

struct trace_event_raw_sched_wakeup_template {
	int pid;
} KERNEL;

struct rq {
	unsigned int nr_running; /* of all classes, the running one included */
} KERNEL;

struct cfs_rq {
	struct rq *rq;
} KERNEL;

struct sched_entity {
	struct cfs_rq *cfs_rq; /* only with CONFIG_FAIR_GROUP_SCHED */
} KERNEL;

struct thread_info {
	unsigned long flags;
} KERNEL;

struct task_struct {
	struct thread_info thread_info; /* only with CONFIG_THREAD_INFO_IN_TASK */
	struct sched_entity se;
	unsigned int policy;
	int prio;
} KERNEL;
