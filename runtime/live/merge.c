/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/merge.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "event.h"
#include "live/ring.h"
#include "run/wall.h"

enum {
	SLACK_MIN = 1000000,  /* ns */
	SLACK_MAX = 50000000, /* ns */
	MERGE_MAX = 1024      /* records that are merged at once */
};

struct merge {
	struct ring **rings;
	uint32_t *active; /* indexes of rings that have records of this pass */
	int *runs;	  /* of each active ring: its records of this round; then ends of runs */
	uint32_t nr_rings, nr_active;
	struct slot spare[MERGE_MAX]; /* runs are merged from here to there, and back */
	double pace;		      /* ns between the records of the last round */
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
	free(m->active);
	free(m->runs);
	free(m);
}

int merge_add(struct merge *m, struct ring *ring)
{
	uint32_t n = m->nr_rings + 1, *active;
	struct ring **rings = reallocarray(m->rings, n, sizeof(*rings));
	int *runs;

	if (!rings)
		return -ENOMEM;
	m->rings = rings;
	active = reallocarray(m->active, n, sizeof(*active));
	if (!active)
		return -ENOMEM;
	m->active = active;
	runs = reallocarray(m->runs, n, sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	m->runs = runs;
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

/* Snapshots all rings and lists those that have records. Returns the time up to
 * which records may go out: the clock is read before the heads, so all that was written with a
 * time before (less the slack) is seen. Without a clock, the ring that is snapshot first bounds:
 * what is older than its newest record has been written everywhere. */
static uint64_t begin_pass(struct merge *m, uint32_t *bound_ring)
{
	uint64_t now = m->has_clock ? wall_monotonic() : 0, limit = now - m->slack;

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

/* Lets the active rings look ahead and drops those that have no more. Returns the time of the
 * oldest record, UINT64_MAX without one; *sure becomes the time up to which all records are in the
 * rings' windows, but not more than the youngest of these. */
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

/* Of records that are all at one time any will do, as many as have room. */
static void clip(struct merge *m, int max)
{
	for (uint32_t i = 0; i < m->nr_active; i++) {
		if (m->runs[i] > max)
			m->runs[i] = max;
		max -= m->runs[i];
	}
}

/* Notes in runs[] how many records of each active ring are to be taken: those up to a time that is
 * chosen so that they are not more than max. */
static void choose(struct merge *m, uint64_t oldest, uint64_t until, int max)
{
	double span = until - oldest, shrink = 0.9;

	/* As many as there were in such a time before. */
	if (m->pace > 0 && span > m->pace * max)
		span = m->pace * max;
	for (;;) {
		uint64_t limit = oldest + (uint64_t)span;
		int total = 0;

		if (limit > until)
			limit = until;
		for (uint32_t i = 0; i < m->nr_active; i++) {
			m->runs[i] = ring_count(m->rings[m->active[i]], limit, max);
			total += m->runs[i];
		}
		if (total <= max) {
			m->pace = span / total;
			return;
		}
		if (limit == oldest) {
			clip(m, max);
			return;
		}
		span *= shrink * max / total;
		shrink *= shrink;
	}
}

/* Merges two neighbouring runs of which one is so much shorter that it is faster to look for where
 * its slots belong. Of slots at one time those of a come first. */
static void merge_short(const struct slot *a, int na, const struct slot *b, int nb,
			struct slot *out)
{
	bool is_a_short = na < nb;
	const struct slot *few = is_a_short ? a : b, *many = is_a_short ? b : a;
	int nr_few = is_a_short ? na : nb, nr_many = is_a_short ? nb : na;

	for (int i = 0; i < nr_few; i++) {
		int from = 0, to = nr_many;

		while (from < to) {
			int middle = (from + to) / 2;
			bool goes_before = is_a_short ? many[middle].time < few[i].time
						      : many[middle].time <= few[i].time;

			if (goes_before)
				from = middle + 1;
			else
				to = middle;
		}
		memcpy(out, many, from * sizeof(*out));
		out += from;
		many += from;
		nr_many -= from;
		*out++ = few[i];
	}
	memcpy(out, many, nr_many * sizeof(*out));
}

/* Which run comes next cannot be predicted, so nothing in the loop branches on it; and each step
 * has to wait for the one before, so two go at once: from the beginnings and from the ends. */
static void merge_two(const struct slot *a, int na, const struct slot *b, int nb, struct slot *out)
{
	struct slot *last = out + na + nb - 1;

	if (na > 8 * nb || nb > 8 * na) {
		merge_short(a, na, b, nb, out);
		return;
	}
	while (na > 1 && nb > 1) {
		int steps = (na < nb ? na : nb) / 2;
		const struct slot *a_last = a + na - 1, *b_last = b + nb - 1;

		for (int i = 0; i < steps; i++) {
			int is_b = b->time < a->time, is_b_last = b_last->time >= a_last->time;
			const struct slot *first_of[] = {a, b}, *last_of[] = {a_last, b_last};

			*out++ = *first_of[is_b];
			*last-- = *last_of[is_b_last];
			a += !is_b;
			b += is_b;
			a_last -= !is_b_last;
			b_last -= is_b_last;
		}
		na = a_last + 1 - a;
		nb = b_last + 1 - b;
	}
	while (na && nb) {
		bool is_b = b->time < a->time;

		*out++ = is_b ? *b++ : *a++;
		na -= !is_b;
		nb -= is_b;
	}
	memcpy(out, na ? a : b, (na ? na : nb) * sizeof(*out));
}

/* Merges neighbours, a level after the other, from one place to the other and back; the runs' ends
 * are in runs[]. */
static void merge_runs(struct merge *m, int nr_runs, struct slot *from, struct slot *to)
{
	while (nr_runs > 1) {
		struct slot *merged = to;
		int begin = 0, n = 0;

		for (int i = 0; i < nr_runs; i += 2) {
			int middle = m->runs[i], end = i + 1 < nr_runs ? m->runs[i + 1] : middle;

			merge_two(from + begin, middle - begin, from + middle, end - middle,
				  to + begin);
			m->runs[n++] = begin = end;
		}
		nr_runs = n;
		to = from;
		from = merged;
	}
}

/* Moves the chosen records of all active rings to out, in order. Returns how many. */
static int gather(struct merge *m, struct slot *out)
{
	int n = 0, nr_runs = 0, levels = 0;
	struct slot *to = out;

	for (uint32_t i = 0; i < m->nr_active; i++)
		nr_runs += m->runs[i] > 0;
	for (int left = nr_runs; left > 1; left = (left + 1) / 2)
		levels++;
	if (levels % 2) /* so that out is where the last one merges to */
		to = m->spare;
	nr_runs = 0;
	for (uint32_t i = 0; i < m->nr_active; i++) {
		int its = m->runs[i];

		if (!its)
			continue;
		ring_move(m->rings[m->active[i]], to + n, its);
		n += its;
		m->runs[nr_runs++] = n;
	}
	merge_runs(m, nr_runs, to, to == out ? m->spare : out);
	return n;
}

/* Moves records that are sure to be the next ones to out, in order; 0: there are none up to limit.
 */
static int take(struct merge *m, struct slot *out, int max, uint64_t limit, uint32_t bound_ring)
{
	uint64_t sure, oldest = look(m, bound_ring, &sure);
	int n;

	if (!m->nr_active || oldest > limit)
		return 0;
	if (sure < limit)
		limit = sure;
	if (m->nr_active == 1) {
		struct ring *r = m->rings[m->active[0]];

		n = ring_count(r, limit, max);
		ring_move(r, out, n);
	} else {
		choose(m, oldest, limit, max < MERGE_MAX ? max : MERGE_MAX);
		n = gather(m, out);
	}
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
