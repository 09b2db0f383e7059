/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clock pair: the CPU's cycle counter (the TSC of x86) and the clocks of the kernel, read at the
 * same moment. Time axes and the clocks of other machines are related by such pairs, so no page or
 * structure of the kernel is needed.
 */
#pragma once
#include <stdint.h>

struct error;

struct clock_pair {
	uint64_t tsc;	     /* cycles */
	uint64_t mono;	     /* CLOCK_MONOTONIC, ns */
	uint64_t real;	     /* CLOCK_REALTIME, ns */
	uint32_t error;	     /* tsc and real belong to mono give or take this many ns */
	uint32_t real_error; /* of CLOCK_REALTIME as the kernel estimates it, us; UINT32_MAX:
				unknown */
};

/* Returns the cycle counter; 0 if this architecture has none that programs can read. */
uint64_t clock_tsc(void);
/* Checks that the cycle counter is fit to be a clock: all CPUs agree, and it never stops.
 * -EOPNOTSUPP with a message. */
int clock_tsc_check(struct error *err);
/* Reads the tightest of a few pairs, in about a microsecond. */
void clock_pair_read(struct clock_pair *out);
