/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/merge.h"
#include <errno.h>
#include <stdlib.h>
#include "event.h"
#include "live/ring.h"
#include "run/wall.h"

enum {
	SLACK_MIN = 1000000, /* ns */
	SLACK_MAX = 50000000 /* ns */
};

struct merge {
	struct ring **rings;
	uint64_t *next_time; /* of each ring */
	uint32_t *heap;	     /* ring indexes, the one with the oldest record first */
	uint32_t nr_rings, nr_heap;
	bool has_clock, stopped;
	bool is_complete; /* nothing older than what is there will come */
	uint64_t time;	  /* when the pass began */
	uint64_t delivered;
	uint64_t slack;
};

struct merge *merge_new(bool has_clock)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
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
	free(m->next_time);
	free(m->heap);
	free(m);
}

int merge_add(struct merge *m, struct ring *ring)
{
	uint32_t n = m->nr_rings + 1;
	struct ring **rings = realloc(m->rings, n * sizeof(*rings));
	uint64_t *next_time;
	uint32_t *heap;

	if (!rings)
		return -ENOMEM;
	m->rings = rings;
	next_time = realloc(m->next_time, n * sizeof(*next_time));
	if (!next_time)
		return -ENOMEM;
	m->next_time = next_time;
	heap = realloc(m->heap, n * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	m->heap = heap;
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
	m->nr_heap = 0;
}

uint32_t merge_nr_rings(const struct merge *m)
{
	return m->nr_rings;
}

struct ring *merge_ring(const struct merge *m, uint32_t index)
{
	return m->rings[index];
}

static void sift_down(struct merge *m, uint32_t at)
{
	uint32_t ring = m->heap[at];
	uint64_t time = m->next_time[ring];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= m->nr_heap)
			break;
		if (child + 1 < m->nr_heap &&
		    m->next_time[m->heap[child + 1]] < m->next_time[m->heap[child]])
			child++;
		if (m->next_time[m->heap[child]] >= time)
			break;
		m->heap[at] = m->heap[child];
		at = child;
	}
	m->heap[at] = ring;
}

/* The time of the second oldest ring: up to there records may be taken from the oldest in a run. */
static uint64_t runner_up(const struct merge *m)
{
	uint64_t time = UINT64_MAX;

	for (uint32_t i = 1; i < 3 && i < m->nr_heap; i++)
		if (m->next_time[m->heap[i]] < time)
			time = m->next_time[m->heap[i]];
	return time;
}

/* Snapshots all rings and builds the heap of those that have records. Returns the time up to
 * which records may go out: the clock is read before the heads, so all that was written with a
 * time before (less the slack) is seen. Without a clock, the ring that is snapshot first bounds:
 * what is older than its newest record has been written everywhere. */
static uint64_t begin_pass(struct merge *m, uint32_t *bound_ring)
{
	uint64_t now = m->has_clock ? wall_monotonic() : 0, limit = now - m->slack;

	m->time = now;
	*bound_ring = UINT32_MAX;
	m->nr_heap = 0;
	for (uint32_t i = 0; i < m->nr_rings; i++) {
		uint64_t unread = ring_snapshot(m->rings[i]);

		if (unread > ring_size(m->rings[i]) / 4 * 3)
			limit = now;
		if (!unread)
			continue;
		if (*bound_ring == UINT32_MAX)
			*bound_ring = i;
		m->next_time[i] = ring_peek(m->rings[i]);
		if (m->next_time[i] != UINT64_MAX)
			m->heap[m->nr_heap++] = i;
	}
	for (uint32_t i = m->nr_heap / 2; i-- > 0;)
		sift_down(m, i);
	if (m->stopped || m->is_complete || !m->has_clock)
		limit = UINT64_MAX;
	if (m->stopped || m->has_clock)
		*bound_ring = UINT32_MAX;
	return limit;
}

/* The n slots are in order among themselves. */
static void mark_late(struct merge *m, struct slot *out, int n)
{
	for (int i = 0; i < n && out[i].time < m->delivered; i++) {
		const struct perf_event_header *rec = out[i].rec;
		uint64_t late = m->delivered - out[i].time;

		/* A hole is often known only when others have gone past its beginning. */
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

int merge_next(struct merge *m, struct slot *out, int max, uint64_t until, uint64_t *horizon)
{
	uint32_t bound_ring;
	uint64_t limit = begin_pass(m, &bound_ring);
	int n = 0;

	if (limit > until)
		limit = until;
	while (n < max && m->nr_heap) {
		uint32_t ring = m->heap[0];
		uint64_t stop = runner_up(m);
		int taken;

		if (m->next_time[ring] > limit)
			break;
		taken = ring_take(m->rings[ring], stop < limit ? stop : limit, out + n, max - n);
		mark_late(m, out + n, taken);
		n += taken;
		m->next_time[ring] = ring_peek(m->rings[ring]);
		if (m->next_time[ring] == UINT64_MAX) {
			m->heap[0] = m->heap[--m->nr_heap];
			if (ring == bound_ring)
				break;
		}
		if (m->nr_heap)
			sift_down(m, 0);
	}
	if (n < max)
		*horizon = m->has_clock || m->stopped ? limit : m->delivered;
	return n;
}

void merge_wait(struct merge *m, bool wait)
{
	m->is_complete = !wait;
}

void merge_stop(struct merge *m)
{
	m->stopped = true;
}

bool merge_drained(const struct merge *m)
{
	return !m->nr_heap;
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
