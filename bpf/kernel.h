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
} KERNEL;

struct task_struct {
	struct thread_info thread_info; /* only with CONFIG_THREAD_INFO_IN_TASK */
	struct sched_entity se;
	unsigned int policy;
	int prio;
	int pid; /* the thread */
	char comm[16];
} KERNEL;
