/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Count sums: the counts of counted events, summed up by CPU or by thread. Counters come and go
 * with their CPUs; the sums stay. If the hardware has fewer counters than events, the kernel
 * multiplexes them, and counts are scaled up to the enabled time.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once
#include <stdint.h>

struct count_sums;

/* The count of one event on one CPU or in one thread. */
struct count {
	double value; /* scaled */
	double share; /* share of the time in which it was counted, 0 to 1; negative: not counted
		       * on this CPU */
};

struct counts {
	uint32_t nr_rows, nr_events;
	const int32_t *ids;	    /* CPU or tid of each row, ascending */
	const struct count *values; /* [row * nr_events + event] */
};

/* NULL: out of memory. */
struct count_sums *count_sums_new(uint32_t nr_events);
void count_sums_free(struct count_sums *s);

/* Adds a row for the CPU or thread, if needed, and marks the event as counted there. Returns 0 or
 * -ENOMEM. */
int count_sums_expect(struct count_sums *s, int32_t id, uint32_t event);
/* Adds the increments of a counter since its last read: its value and the enabled and running times
 * in ns. Requires count_sums_expect() for the event. */
void count_sums_add(struct count_sums *s, int32_t id, uint32_t event, uint64_t value,
		    uint64_t enabled, uint64_t running);
/* Returns the sums since the last call and resets them; valid until the next call of a function of
 * this module. */
void count_sums_take(struct count_sums *s, struct counts *out);
