/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Merge: merges many rings into one stream in time order, without copies. Records are held back for
 * `slack`, because other CPUs may still be writing older ones. Slack grows when a record arrives
 * late anyway. If the clock cannot be read, the rings bound each other.
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

/* Takes ownership of the ring, with number merge_nr_rings(). Returns 0 or -ENOMEM. */
int merge_add(struct merge *m, struct ring *ring);
/* Frees a ring; the last ring gets its number. No delivered record may be in use. */
void merge_remove(struct merge *m, uint32_t index);
uint32_t merge_nr_rings(const struct merge *m);
struct ring *merge_ring(const struct merge *m, uint32_t index);

/* Releases the space of all delivered records to the kernel. */
void merge_release(struct merge *m);
/* Writes the next records with time <= until to out, oldest first, and returns their number. If it
 * is below max, *horizon becomes the time up to which the stream is complete. */
int merge_next(struct merge *m, struct slot *out, int max, uint64_t until, uint64_t *horizon);
/* Sets whether records are held back by slack; initially they are. */
void merge_hold(struct merge *m, bool hold);
/* No more records will be written, so none are held back. */
void merge_stop(struct merge *m);
/* Whether the last merge_next() delivered everything it had seen. */
bool merge_drained(const struct merge *m);

/* Lets slack shrink slowly. Call this when idle. */
void merge_relax(struct merge *m);
/* Returns the current slack in ns. */
uint64_t merge_slack(const struct merge *m);
/* Returns the time at which the last merge_next() started; 0 without a clock. */
uint64_t merge_time(const struct merge *m);
/* Returns the time of the newest delivered record. */
uint64_t merge_delivered(const struct merge *m);
