/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs: slots that wait in several places, in the order of time in each of them, become one run.
 * They are taken in rounds: from each place what lies before a time that is chosen so that the
 * round fills the batch, and these runs are merged pairwise. What a slot costs grows with the
 * logarithm of the number of places, but no branch depends on whose turn it is.
 */
#pragma once
#include <stdint.h>
#include "event.h"

/* Where slots wait. */
struct sorted_runs_ops {
	/* How many of place number i have time <= limit; max if they are more. */
	int (*count)(void *places, uint32_t i, uint64_t limit, int max);
	/* Moves the n oldest of place number i to out. */
	void (*move)(void *places, uint32_t i, struct slot *out, int n);
};

struct sorted_runs;

/* NULL: out of memory. */
struct sorted_runs *sorted_runs_new(const struct sorted_runs_ops *ops, void *places);
void sorted_runs_free(struct sorted_runs *r);
/* Makes it ready for so many places. 0 or -ENOMEM. */
int sorted_runs_reserve(struct sorted_runs *r, uint32_t nr_places);
/* How many of n slots in the order of time have time <= limit. */
int sorted_runs_count(const struct slot *slots, int n, uint64_t limit);
/* Moves slots with time <= until to out, oldest first, of one time those of lower places first;
 * up to max, but it may be fewer than there are. oldest: the time of the oldest one, <= until;
 * until should not be far beyond the youngest.
 * Returns how many: not 0. */
int sorted_runs_take(struct sorted_runs *r, uint32_t nr_places, uint64_t oldest, uint64_t until,
		     struct slot *out, int max);
/* Merges nr runs that lie one behind the other in `from`, each up to its end in ends[], which is
 * used up. `other` has room for as many. Returns where the one run is: from or other. */
struct slot *sorted_runs_merge(struct slot *from, struct slot *other, int *ends, int nr);
