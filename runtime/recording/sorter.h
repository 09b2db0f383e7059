/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sorter: puts slots in time order that come as a few interleaved sorted runs, which is what the
 * dump of several rings is. Adding and taking may alternate.
 */
#pragma once
#include <stdint.h>
#include "event.h"

struct sorter;

struct sorter *sorter_new(void);
void sorter_free(struct sorter *s);

/* 0 or -ENOMEM. */
int sorter_add(struct sorter *s, uint64_t time, const void *rec, uint32_t ring);

/* Moves up to max slots with time <= until to out, oldest first. Those of one time come in the
 * order in which they were added, unless the input is so disordered that it has more than a
 * thousand runs. Returns how many. */
int sorter_take(struct sorter *s, struct slot *out, int max, uint64_t until);

/* No slot in it is older than this; UINT64_MAX when it is empty. */
uint64_t sorter_oldest(const struct sorter *s);
