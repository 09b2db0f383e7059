/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * History: the last events of a stream in time order, all that somebody may still ask for: what lay
 * between two events, before the first, behind the second. The copies live in a timeline. They
 * leave when nobody needs times that old any more; when the timeline is full the oldest leave
 * early, which is counted.
 */
#pragma once
#include <stdint.h>

struct event;
struct history;
struct timeline;

struct history_stats {
	uint64_t evicted;     /* that left early, or were not kept, for want of room */
	double evicted_until; /* ns: older ones may be missing; -INFINITY: none are */
};

/* keep must outlive the history. When it takes more than max_bytes, be it for others, the oldest
 * events leave, but for some thousand. NULL without memory. */
struct history *history_new(struct timeline *keep, uint64_t max_bytes);
void history_free(struct history *h);
/* Events of class are kept. -EINVAL if there is no such class. */
int history_want(struct history *h, uint16_t class);

/* Keeps those of n events that are wanted. copies[i] is the copy of events[i], NULL where there is
 * none; it lasts until it is forgotten, or longer if somebody retains it. */
void history_add(struct history *h, const struct event *events, int n, struct event **copies);

/* Events older than time are not needed any more. */
void history_forget(struct history *h, double time);

/* How many events are kept. */
uint32_t history_count(const struct history *h);
/* How many events are older than time. They are numbered from 0, the oldest; each forgetting
 * numbers them anew. */
uint32_t history_find(const struct history *h, double time);
/* Event number index; NULL beyond the youngest. */
struct event *history_at(const struct history *h, uint32_t index);
void history_read_stats(const struct history *h, struct history_stats *out);
