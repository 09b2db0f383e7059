/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring of pointers to kept events. The input is ordered except for a few late events, which are
 * moved to their place from the young end.
 */
#include "relations/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "event.h"
#include "relations/timeline.h"

enum { MIN_EVENTS = 4096, MAX_EVENTS = 1 << 26, EVICT_PART = 64 };

struct history {
	struct timeline *keep;
	uint64_t max_bytes;
	struct event **ring;
	uint32_t mask;	       /* slots - 1 */
	uint32_t first, count; /* first is not masked */
	double youngest;       /* ns: of all events that were ever added */
	struct history_stats stats;
	uint8_t wanted[EVENT_CLASSES];
};

struct history *history_new(struct timeline *keep, uint64_t max_bytes)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->keep = keep;
	h->max_bytes = max_bytes;
	h->mask = MIN_EVENTS - 1;
	h->stats.evicted_until = h->youngest = -INFINITY;
	h->ring = calloc(MIN_EVENTS, sizeof(struct event *));
	if (!h->ring) {
		free(h);
		return NULL;
	}
	return h;
}

static struct event **slot(const struct history *h, uint32_t index)
{
	return &h->ring[(h->first + index) & h->mask];
}

/* Drops the oldest n events without looking at them: they left the caches long ago. */
static void drop(struct history *h, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		timeline_release(h->keep, *slot(h, i));
	h->first += n;
	h->count -= n;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	drop(h, h->count);
	free(h->ring);
	free(h);
}

int history_want(struct history *h, uint16_t class)
{
	if (class >= EVENT_CLASSES || class == EVENT_LOST)
		return -EINVAL;
	h->wanted[class] = 1;
	return 0;
}

static void note_evicted(struct history *h, uint32_t n, double time)
{
	h->stats.evicted += n;
	if (h->stats.evicted_until < time)
		h->stats.evicted_until = time;
}

/* Makes room by dropping some of the oldest events, at least one. */
static void evict(struct history *h)
{
	uint32_t n = h->count / EVICT_PART + 1;

	if (n > h->count)
		n = h->count;
	note_evicted(h, n, (*slot(h, n - 1))->time);
	drop(h, n);
}

static void grow(struct history *h)
{
	uint32_t slots = 2 * (h->mask + 1);
	struct event **ring = slots <= MAX_EVENTS ? malloc(slots * sizeof(struct event *)) : NULL;

	if (!ring) {
		evict(h);
		return;
	}
	for (uint32_t i = 0; i < h->count; i++)
		ring[i] = *slot(h, i);
	free(h->ring);
	h->ring = ring;
	h->mask = slots - 1;
	h->first = 0;
}

static struct event *add(struct history *h, const struct event *ev)
{
	struct event *copy;
	uint32_t i;

	while (!(copy = timeline_keep(h->keep, ev))) {
		if (!h->count) {
			note_evicted(h, 1, ev->time);
			return NULL;
		}
		evict(h);
	}
	if (h->count > h->mask)
		grow(h);
	i = h->count++;
	if (ev->time >= h->youngest)
		h->youngest = ev->time;
	else
		for (; i && (*slot(h, i - 1))->time > ev->time; i--)
			*slot(h, i) = *slot(h, i - 1);
	*slot(h, i) = copy;
	return copy;
}

void history_add(struct history *h, const struct event *events, int n, struct event **copies)
{
	while (h->count >= MIN_EVENTS && timeline_bytes(h->keep) > h->max_bytes)
		evict(h);
	for (int i = 0; i < n; i++) {
		uint16_t class = events[i].class;

		copies[i] = class < EVENT_CLASSES && h->wanted[class] ? add(h, &events[i]) : NULL;
	}
}

void history_forget(struct history *h, double time)
{
	drop(h, history_find(h, time));
}

uint32_t history_count(const struct history *h)
{
	return h->count;
}

uint32_t history_find(const struct history *h, double time)
{
	uint32_t low = 0, high = h->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((*slot(h, middle))->time < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct event *history_at(const struct history *h, uint32_t index)
{
	return index < h->count ? *slot(h, index) : NULL;
}

void history_read_stats(const struct history *h, struct history_stats *out)
{
	*out = h->stats;
}
