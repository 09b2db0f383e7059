/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How soon this process gets a CPU when its rings fill. Records are lost while it waits behind the
 * tasks that it watches.
 */
#pragma once
#include <stdint.h>

struct error;

/* Asks the scheduler for short slices that come soon, not for a larger share. Kernels before 6.12
 * ignore it. What this process starts has no higher priority than others. Processes with another
 * than the normal policy are left alone. May be called in signal handlers. */
void priority_hurry(void);
/* Sets SCHED_FIFO with this priority (1-99), for this process but not for its children. */
int priority_realtime(uint32_t priority, struct error *err);
