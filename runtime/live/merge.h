/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Merge: one stream in time order out of many rings, without copies. Records go out once the clock
 * is `slack` past them, so that what other cpus are still writing is not overtaken; slack grows
 * when that happens all the same. Without a clock that can be read here, the rings bound each
 * other.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct merge;
struct ring;
struct slot;

/* NULL: out of memory. */
struct merge *merge_new(bool has_clock);
/* Frees the rings too. */
void merge_free(struct merge *m);

/* Takes over the ring, as number merge_nr_rings(). 0 or -ENOMEM. */
int merge_add(struct merge *m, struct ring *ring);
/* Frees a ring; the last one takes its number. Nothing that was handed out may be in use. */
void merge_remove(struct merge *m, uint32_t index);
uint32_t merge_nr_rings(const struct merge *m);
struct ring *merge_ring(const struct merge *m, uint32_t index);

/* Gives the space of all that was handed out back to the kernel. */
void merge_release(struct merge *m);
/* The next records with time <= until, oldest first; returns how many. When these are less than
 * max, *horizon becomes the time up to which that was all. */
int merge_next(struct merge *m, struct slot *out, int max, uint64_t until, uint64_t *horizon);
/* Whether records are held back for a while, lest older ones come yet: they are, at first. */
void merge_wait(struct merge *m, bool wait);
/* No more records will be written: what there is need not be held back. */
void merge_stop(struct merge *m);
/* Whether the last merge_next() left nothing that it had seen. */
bool merge_drained(const struct merge *m);

/* To be called when there is nothing to do: slack shrinks slowly, it grew for a reason. */
void merge_relax(struct merge *m);
/* Nanoseconds that records are held back at the moment. */
uint64_t merge_slack(const struct merge *m);
/* When the last merge_next() began; 0 without a clock. */
uint64_t merge_time(const struct merge *m);
/* Time of the newest record that was handed out. */
uint64_t merge_delivered(const struct merge *m);
