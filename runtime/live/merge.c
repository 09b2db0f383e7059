/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/merge.h"
#include <errno.h>
#include <stdlib.h>
#include "event.h"
#include "live/ring.h"
#include "os/clock.h"
#include "sorted_runs.h"

enum {
	SLACK_MIN = 1000000, /* ns */
	SLACK_MAX = 50000000 /* ns */
};

struct merge {
	struct ring **rings;
	uint32_t *active; /* indexes of the rings with records in this pass */
	uint32_t nr_rings, nr_active;
	struct sorted_runs *runs;
	bool has_clock, stopped;
	bool is_complete; /* no older records will arrive: nothing is held back */
	uint64_t time;	  /* start of the pass */
	uint64_t delivered;
	uint64_t slack;
};

static int count(void *places, uint32_t i, uint64_t limit, int max)
{
	const struct merge *m = places;

	return ring_count(m->rings[m->active[i]], limit, max);
}

static void move(void *places, uint32_t i, struct slot *out, int n)
{
	struct merge *m = places;

	ring_move(m->rings[m->active[i]], out, n);
}

static const struct sorted_runs_ops active_rings = {.count = count, .move = move};

struct merge *merge_new(bool has_clock)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->runs = sorted_runs_new(&active_rings, m);
	if (!m->runs) {
		free(m);
		return NULL;
	}
	m->has_clock = has_clock;
	m->slack = SLACK_MIN;
	return m;
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->nr_rings; i++)
		ring_free(m->rings[i]);
	free(m->rings);
	free(m->active);
	sorted_runs_free(m->runs);
	free(m);
}

int merge_add(struct merge *m, struct ring *ring)
{
	uint32_t n = m->nr_rings + 1, *active;
	struct ring **rings = reallocarray(m->rings, n, sizeof(*rings));

	if (!rings)
		return -ENOMEM;
	m->rings = rings;
	active = reallocarray(m->active, n, sizeof(*active));
	if (!active)
		return -ENOMEM;
	m->active = active;
	if (sorted_runs_reserve(m->runs, n))
		return -ENOMEM;
	ring_set_number(ring, m->nr_rings);
	m->rings[m->nr_rings++] = ring;
	return 0;
}

void merge_remove(struct merge *m, uint32_t index)
{
	ring_free(m->rings[index]);
	m->rings[index] = m->rings[--m->nr_rings];
	if (index < m->nr_rings)
		ring_set_number(m->rings[index], index);
	m->nr_active = 0;
}

uint32_t merge_nr_rings(const struct merge *m)
{
	return m->nr_rings;
}

struct ring *merge_ring(const struct merge *m, uint32_t index)
{
	return m->rings[index];
}

/* Takes a snapshot of all rings and lists those with records. Returns the time up to which records
 * may be delivered. The clock is read before the heads, so all records older than that (less slack)
 * are seen. Without a clock, the first ring is the bound: all records older than its newest one
 * have been written to the other rings. */
static uint64_t begin_pass(struct merge *m, uint32_t *bound_ring)
{
	uint64_t now = m->has_clock ? clock_monotonic() : 0, limit = now - m->slack;

	m->time = now;
	*bound_ring = UINT32_MAX;
	m->nr_active = 0;
	for (uint32_t i = 0; i < m->nr_rings; i++) {
		uint64_t unread = ring_snapshot(m->rings[i]);

		if (unread > ring_size(m->rings[i]) / 4 * 3)
			limit = now;
		if (!unread)
			continue;
		if (*bound_ring == UINT32_MAX)
			*bound_ring = i;
		m->active[m->nr_active++] = i;
	}
	if (m->stopped || m->is_complete || !m->has_clock)
		limit = UINT64_MAX;
	if (m->stopped || m->has_clock)
		*bound_ring = UINT32_MAX;
	return limit;
}

/* Marks slots older than a delivered one as late, and adapts slack. The n slots are sorted. */
static void mark_late(struct merge *m, struct slot *out, int n)
{
	for (int i = 0; i < n && out[i].time < m->delivered; i++) {
		const struct perf_event_header *rec = out[i].rec;
		uint64_t late = m->delivered - out[i].time;

		/* A loss is often known only later than other records. */
		if (rec->type == PERF_RECORD_LOST)
			continue;
		out[i].flags |= EVENT_LATE;
		if (m->slack < late + late / 2)
			m->slack = late + late / 2 < SLACK_MAX ? late + late / 2 : SLACK_MAX;
	}
	if (n && out[n - 1].time > m->delivered)
		m->delivered = out[n - 1].time;
}

void merge_release(struct merge *m)
{
	for (uint32_t i = 0; i < m->nr_rings; i++)
		ring_release(m->rings[i]);
}

/* Fills the windows of the active rings and drops rings without records. Returns the time of the
 * oldest record, UINT64_MAX if there is none. *sure becomes the time up to which all records are in
 * the windows, but at most the time of the newest record in them. */
static uint64_t look(struct merge *m, uint32_t bound_ring, uint64_t *sure)
{
	uint64_t oldest = UINT64_MAX, newest = 0, bound = UINT64_MAX;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->nr_active; i++) {
		struct ring *r = m->rings[m->active[i]];
		uint64_t first = ring_peek(r), last, its;

		if (first == UINT64_MAX)
			continue;
		m->active[n++] = m->active[i];
		last = ring_newest(r);
		its = ring_sure(r);
		if (first < oldest)
			oldest = first;
		if (last > newest)
			newest = last;
		if (m->active[i] == bound_ring && its > last)
			its = last;
		if (its < bound)
			bound = its;
	}
	m->nr_active = n;
	*sure = bound < newest ? bound : newest;
	return oldest;
}

/* Moves the next records to out, as far as their order is certain. Returns 0 if there are none up
 * to limit. */
static int take(struct merge *m, struct slot *out, int max, uint64_t limit, uint32_t bound_ring)
{
	uint64_t sure, oldest = look(m, bound_ring, &sure);
	int n;

	if (!m->nr_active || oldest > limit)
		return 0;
	if (sure < limit)
		limit = sure;
	n = sorted_runs_take(m->runs, m->nr_active, oldest, limit, out, max);
	mark_late(m, out, n);
	return n;
}

int merge_next(struct merge *m, struct slot *out, int max, uint64_t until, uint64_t *horizon)
{
	uint32_t bound_ring;
	uint64_t limit = begin_pass(m, &bound_ring);
	int n = 0, taken;

	if (limit > until)
		limit = until;
	do {
		taken = take(m, out + n, max - n, limit, bound_ring);
		n += taken;
		if (bound_ring < m->nr_rings && ring_peek(m->rings[bound_ring]) == UINT64_MAX)
			break;
	} while (taken && n < max);
	if (n < max)
		*horizon = m->has_clock || m->stopped ? limit : m->delivered;
	return n;
}

void merge_hold(struct merge *m, bool hold)
{
	m->is_complete = !hold;
}

void merge_stop(struct merge *m)
{
	m->stopped = true;
}

bool merge_drained(const struct merge *m)
{
	return !m->nr_active;
}

void merge_relax(struct merge *m)
{
	m->slack -= (m->slack - SLACK_MIN) / 64;
}

uint64_t merge_slack(const struct merge *m)
{
	return m->slack;
}

uint64_t merge_time(const struct merge *m)
{
	return m->time;
}

uint64_t merge_delivered(const struct merge *m)
{
	return m->delivered;
}
