/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Merges many rings into one stream in time order, without copies. Records are held back until the
 * clock is `slack` past them, so that records which other CPUs are still writing are not overtaken.
 * If that happens all the same, slack grows. Without a readable clock the rings bound each other.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct merge;
struct ring;
struct slot;

/* Returns NULL without memory. */
struct merge *merge_new(bool has_clock);
/* Frees the rings too. */
void merge_free(struct merge *m);

/* Takes over the ring, whose number is merge_nr_rings(). Returns 0 or -ENOMEM. */
int merge_add(struct merge *m, struct ring *ring);
/* Frees a ring; the last ring takes over its number. Records that were handed out must not be in
 * use. */
void merge_remove(struct merge *m, uint32_t index);
uint32_t merge_nr_rings(const struct merge *m);
struct ring *merge_ring(const struct merge *m, uint32_t index);

/* Gives the space of all records that were handed out back to the kernel. */
void merge_release(struct merge *m);
/* Gets the next records with time <= until, oldest first. Returns how many. If these are less than
 * max, *horizon becomes the time up to which they are complete. */
int merge_next(struct merge *m, struct slot *out, int max, uint64_t until, uint64_t *horizon);
/* Sets whether records are held back in case older ones come. They are by default. */
void merge_wait(struct merge *m, bool wait);
/* No more records will be written: the existing ones need not be held back. */
void merge_stop(struct merge *m);
/* Returns whether the last merge_next() delivered everything that it had seen. */
bool merge_drained(const struct merge *m);

/* To be called when idle. Slack shrinks slowly, because it grew for a reason. */
void merge_relax(struct merge *m);
/* Returns the ns that records are held back at present. */
uint64_t merge_slack(const struct merge *m);
/* Returns when the last merge_next() began; 0 without a clock. */
uint64_t merge_time(const struct merge *m);
/* Returns the time of the newest record that was handed out. */
uint64_t merge_delivered(const struct merge *m);
