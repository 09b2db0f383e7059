/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock of live events, and its wall time: the kernel's clocks, also in a time namespace, where
 * clock_gettime(2) returns others.
 */
#pragma once
#include <stdint.h>

/* Gets CLOCK_REALTIME at CLOCK_MONOTONIC 0: whole seconds, and the ns to add. */
void clock_wall_zero(double *sec, double *nsec);

/* Returns CLOCK_MONOTONIC in ns. May be called in signal handlers after a first call. */
uint64_t clock_monotonic(void);
/* Returns CLOCK_BOOTTIME in ns. */
uint64_t clock_boottime(void);
