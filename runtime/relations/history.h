/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last events of a stream in time order, as far as somebody may still ask for them: what
 * happened between two events, before the first or after the second. The copies are in a timeline.
 * They are dropped when nobody needs times that old any more. When the timeline is full, the oldest
 * are dropped early, which is counted.
 */
#pragma once
#include <stdint.h>

struct event;
struct history;
struct timeline;

struct history_stats {
	uint64_t evicted;     /* events dropped early, or not kept, for lack of room */
	double evicted_until; /* ns: older ones may be missing; -INFINITY: none is */
};

/* keep must outlive the history. When it takes more than max_bytes, even for others, the oldest
 * events are dropped, except for a few thousand. Returns NULL without memory. */
struct history *history_new(struct timeline *keep, uint64_t max_bytes);
void history_free(struct history *h);
/* Keeps events of class. Returns -EINVAL if there is no such class. */
int history_want(struct history *h, uint16_t class);

/* Keeps the wanted ones of n events. copies[i] becomes the copy of events[i], NULL if there is
 * none. A copy lasts until it is forgotten, or longer if somebody retains it. */
void history_add(struct history *h, const struct event *events, int n, struct event **copies);

/* Drops events older than time. */
void history_forget(struct history *h, double time);

/* Returns the number of kept events. */
uint32_t history_count(const struct history *h);
/* Returns how many events are older than time. Events are numbered from 0, the oldest; dropping
 * renumbers them. */
uint32_t history_find(const struct history *h, double time);
/* Returns the event with this number; NULL after the youngest. */
struct event *history_at(const struct history *h, uint32_t index);
void history_read_stats(const struct history *h, struct history_stats *out);
