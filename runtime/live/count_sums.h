/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sums of what counted events (events without samples) have counted, by CPU or by thread. Counters
 * come and go with their CPUs, the sums stay. If the hardware had fewer counters than events,
 * counts are scaled up to the time that the event should have been counted.
 */
#pragma once
#include <stdint.h>

struct count_sums;

/* One event on one CPU, or of one thread, between two reads. */
struct count {
	double value; /* scaled */
	double share; /* part of the time that it was counted, 0 to 1; negative: it is not counted
			 here */
};

struct counts {
	uint32_t nr_rows, nr_events;
	const int32_t *ids;	    /* CPU or tid of each row, ascending */
	const struct count *values; /* [row * nr_events + event] */
};

/* Returns NULL without memory. */
struct count_sums *count_sums_new(uint32_t nr_events);
void count_sums_free(struct count_sums *sums);

/* From now on the event is counted for this CPU or thread. Returns 0 or -ENOMEM. */
int count_sums_expect(struct count_sums *sums, int32_t id, uint32_t event);
/* Adds what a counter has counted since its last read, the ns it should have been counted and the
 * ns it was. The event must be expected. */
void count_sums_add(struct count_sums *sums, int32_t id, uint32_t event, uint64_t value,
		    uint64_t enabled, uint64_t running);
/* Gets everything that was added since the last call. The result is valid until any other call. */
void count_sums_take(struct count_sums *sums, struct counts *out);
