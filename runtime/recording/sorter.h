/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sorter: sorts slots by time. It is fast for input that consists of a few interleaved sorted runs,
 * such as the dump of several rings. Adding and taking may alternate.
 */
#pragma once
#include <stdint.h>
#include "event.h"

struct sorter;

struct sorter *sorter_new(void);
void sorter_free(struct sorter *s);

/* Adds a slot. Returns 0 or -ENOMEM. */
int sorter_add(struct sorter *s, uint64_t time, const void *rec, uint32_t ring);

/* Moves up to max slots with time <= until to out, oldest first, and returns their number. Slots
 * with equal times stay in the order in which they were added, unless the input has more than a
 * thousand runs. */
int sorter_take(struct sorter *s, struct slot *out, int max, uint64_t until);

/* Returns the time of the oldest slot; UINT64_MAX if it is empty. */
uint64_t sorter_oldest(const struct sorter *s);
