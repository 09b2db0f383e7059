/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Merges slots that wait in several places, sorted by time in each of them, into one sorted run.
 * Slots are taken in rounds: from each place those before a time that is chosen so that the round
 * fills the batch. These runs are merged pairwise. The cost of a slot grows with the logarithm of
 * the number of places, but no branch depends on whose turn it is.
 */
#pragma once
#include <stdint.h>
#include "event.h"

/* The places where slots wait. */
struct sorted_runs_ops {
	/* Returns how many slots of place i have time <= limit, at most max. */
	int (*count)(void *places, uint32_t i, uint64_t limit, int max);
	/* Moves the n oldest slots of place i to out. */
	void (*move)(void *places, uint32_t i, struct slot *out, int n);
};

struct sorted_runs;

/* Returns NULL without memory. */
struct sorted_runs *sorted_runs_new(const struct sorted_runs_ops *ops, void *places);
void sorted_runs_free(struct sorted_runs *r);
/* Prepares for this number of places. Returns 0 or -ENOMEM. */
int sorted_runs_reserve(struct sorted_runs *r, uint32_t nr_places);
/* Returns how many of n slots, sorted by time, have time <= limit. */
int sorted_runs_count(const struct slot *slots, int n, uint64_t limit);
/* Moves slots with time <= until to out, oldest first; of slots with the same time those of lower
 * places come first. Moves at most max, perhaps fewer than there are. oldest: the time of the
 * oldest slot, <= until; until should not be far beyond the youngest. Returns how many; never 0. */
int sorted_runs_take(struct sorted_runs *r, uint32_t nr_places, uint64_t oldest, uint64_t until,
		     struct slot *out, int max);
/* Merges nr runs that follow each other in `from`, each up to its end in ends[], which is
 * overwritten. `other` has the same size. Returns the buffer with the merged run: from or other. */
struct slot *sorted_runs_merge(struct slot *from, struct slot *other, int *ends, int nr);
