/* SPDX-License-Identifier: GPL-2.0-only */
#include "sorted_runs.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND = 1024 }; /* slots at most */

struct sorted_runs {
	const struct sorted_runs_ops *ops;
	void *places;
	int *counts; /* by place: its slots of this round; later the ends of runs */
	uint32_t max_places;
	double pace; /* ns per slot in the last round */
	struct slot spare[ROUND];
};

struct sorted_runs *sorted_runs_new(const struct sorted_runs_ops *ops, void *places)
{
	struct sorted_runs *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ops = ops;
	r->places = places;
	return r;
}

void sorted_runs_free(struct sorted_runs *r)
{
	if (!r)
		return;
	free(r->counts);
	free(r);
}

int sorted_runs_reserve(struct sorted_runs *r, uint32_t nr_places)
{
	uint32_t max = nr_places + nr_places / 2;
	int *counts;

	if (nr_places <= r->max_places)
		return 0;
	counts = reallocarray(r->counts, max, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	r->counts = counts;
	r->max_places = max;
	return 0;
}

int sorted_runs_count(const struct slot *slots, int n, uint64_t limit)
{
	int from = 0, step = 1;

	/* Usually few: search near the first one, then bisect. */
	while (step <= n && slots[step - 1].time <= limit) {
		from = step;
		step *= 2;
	}
	if (step - 1 < n)
		n = step - 1;
	while (from < n) {
		int middle = (from + n) / 2;

		if (slots[middle].time <= limit)
			from = middle + 1;
		else
			n = middle;
	}
	return n;
}

/* Merges two neighbouring runs of which one is so much shorter that it is faster to search the
 * places of its slots. Of slots with the same time those of a come first. */
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

/* Which run comes next cannot be predicted, so nothing in the loop branches on it. Each step has to
 * wait for the one before, so two merges run at once: from the beginnings and from the ends. */
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

/* Merges neighbours level by level, back and forth between the two buffers. */
struct slot *sorted_runs_merge(struct slot *from, struct slot *other, int *ends, int nr)
{
	while (nr > 1) {
		struct slot *merged = other;
		int begin = 0, n = 0;

		for (int i = 0; i < nr; i += 2) {
			int middle = ends[i], end = i + 1 < nr ? ends[i + 1] : middle;

			merge_two(from + begin, middle - begin, from + middle, end - middle,
				  merged + begin);
			ends[n++] = begin = end;
		}
		nr = n;
		other = from;
		from = merged;
	}
	return from;
}

/* All slots have the same time: takes the first ones, as many as there is room for. */
static void clip(struct sorted_runs *r, uint32_t nr, int max)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (r->counts[i] > max)
			r->counts[i] = max;
		max -= r->counts[i];
	}
}

/* Chooses how many slots of each place belong to this round. */
static void choose(struct sorted_runs *r, uint32_t nr, uint64_t oldest, uint64_t until, int max)
{
	double span = until - oldest, shrink = 0.9;

	/* The span of max slots at the pace of the last round. */
	if (r->pace > 0 && span > r->pace * max)
		span = r->pace * max;
	for (;;) {
		/* A span that is not shorter may have become longer by rounding. */
		uint64_t limit = span < (double)(until - oldest) ? oldest + (uint64_t)span : until;
		int64_t total = 0;

		for (uint32_t i = 0; i < nr; i++) {
			r->counts[i] = r->ops->count(r->places, i, limit, max);
			total += r->counts[i];
		}
		if (total <= max) {
			r->pace = span / total;
			return;
		}
		if (limit == oldest) {
			clip(r, nr, max);
			return;
		}
		span *= shrink * max / total;
		shrink *= shrink;
	}
}

int sorted_runs_take(struct sorted_runs *r, uint32_t nr_places, uint64_t oldest, uint64_t until,
		     struct slot *out, int max)
{
	int n = 0, nr_runs = 0, levels = 0;
	struct slot *to = out;

	if (nr_places == 1) {
		n = r->ops->count(r->places, 0, until, max);
		r->ops->move(r->places, 0, out, n);
		return n;
	}
	choose(r, nr_places, oldest, until, max < ROUND ? max : ROUND);
	for (uint32_t i = 0; i < nr_places; i++)
		nr_runs += r->counts[i] > 0;
	for (int left = nr_runs; left > 1; left = (left + 1) / 2)
		levels++;
	if (levels % 2) /* so that the last level merges into out */
		to = r->spare;
	nr_runs = 0;
	for (uint32_t i = 0; i < nr_places; i++) {
		int its = r->counts[i];

		if (!its)
			continue;
		r->ops->move(r->places, i, to + n, its);
		n += its;
		r->counts[nr_runs++] = n;
	}
	sorted_runs_merge(to, to == out ? r->spare : out, r->counts, nr_runs);
	return n;
}
