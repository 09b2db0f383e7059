/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sorts slots by time that arrive as a few interleaved sorted runs, as in the dump of several
 * rings. Adding and taking may alternate.
 */
#pragma once
#include <stdint.h>
#include "event.h"

struct sorter;

struct sorter *sorter_new(void);
void sorter_free(struct sorter *s);

/* Returns 0 or -ENOMEM. */
int sorter_add(struct sorter *s, uint64_t time, const void *rec, uint32_t ring);

/* Moves up to max slots with time <= until to out, oldest first. Slots of the same time keep the
 * order in which they were added, unless the input is so disordered that it has more than a
 * thousand runs. Returns how many. */
int sorter_take(struct sorter *s, struct slot *out, int max, uint64_t until);

/* No slot is older than this; UINT64_MAX if there is none. */
uint64_t sorter_oldest(const struct sorter *s);
