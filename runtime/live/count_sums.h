/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tally: what events that are only counted have counted, summed up by cpu or by thread. Counters
 * come and go with their cpus; the sums stays. Where the hardware had fewer counters than events,
 * counts are scaled up to the time that an event should have been counted.
 */
#pragma once
#include <stdint.h>

struct count_sums;

/* One event on one cpu, or of one thread, between two tellings. */
struct count {
	double value; /* scaled */
	double share; /* of the time that it was counted, 0 to 1; negative: it is not counted here
		       */
};

struct counts {
	uint32_t nr_rows, nr_events;
	const int32_t *ids;	    /* cpu or tid of each row, ascending */
	const struct count *values; /* [row * nr_events + event] */
};

/* NULL: out of memory. */
struct count_sums *count_sums_new(uint32_t nr_events);
void count_sums_free(struct count_sums *t);

/* From here on the event is counted for this cpu or thread. 0 or -ENOMEM. */
int count_sums_expect(struct count_sums *t, int32_t id, uint32_t event);
/* Adds what a counter has counted since it was read before, and the ns in which it should have
 * counted and did. The event must be expected. */
void count_sums_add(struct count_sums *t, int32_t id, uint32_t event, uint64_t value,
		    uint64_t enabled, uint64_t running);
/* All that was added since the last telling; valid until the next call of any of these. */
void count_sums_take(struct count_sums *t, struct counts *out);
