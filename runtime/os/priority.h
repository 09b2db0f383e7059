/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Priority: how soon this process gets a CPU when its rings fill. Records are lost while it waits
 * for its turn behind the tasks that it watches.
 */
#pragma once
#include <stdint.h>

struct error;

/* Asks for short turns that come soon: no larger share of the CPUs. Kernels before 6.12 take no
 * notice, processes of other than the normal policy are left as they are. */
void priority_hurry(void);
/* SCHED_FIFO with this priority (1-99), for this process but not for those it starts. */
int priority_realtime(uint32_t priority, struct error *err);
