/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock that live events carry, and its wall time. */
#pragma once
#include <stdint.h>

/* CLOCK_REALTIME when CLOCK_MONOTONIC was 0: whole seconds, and ns to add. */
void clock_wall_zero(double *sec, double *nsec);

/* CLOCK_MONOTONIC now, ns. */
uint64_t clock_monotonic(void);
