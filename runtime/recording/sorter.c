/* SPDX-License-Identifier: GPL-2.0-only */
/* Patience sort that can be drained at any time ("impatience sort"). A slot is appended to the
 * first run whose last time is not greater than its own, or starts a new run. So the last times
 * decrease from run to run, the number of runs is at most the length of the longest strictly
 * decreasing sequence of the input, and of equal times the first one is in the same or an earlier
 * run. Consecutive slots mostly belong to the same run: then adding costs two comparisons. */
#include "recording/sorter.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "sorted_runs.h"

enum {
	MAX_RUNS = 1024,
	FIRST_ROOM = 64,     /* slots */
	SPARE_ROOM = 1 << 14 /* slots of memory kept by an unused run */
};

struct run {
	struct slot *slots;
	size_t first, end, room; /* slots[first..end) are not yet taken */
};

struct sorter {
	unsigned int nr_runs, current; /* current: the run of the last added slot */
	bool is_tidy;
	struct sorted_runs *taking;
	uint64_t tails[MAX_RUNS];  /* time of each run's last slot, decreasing */
	struct run runs[MAX_RUNS]; /* those from nr_runs on are empty, some with memory */
};

/* Returns the number of slots of a run with time <= limit, at most max. */
static int count(void *places, uint32_t i, uint64_t limit, int max)
{
	const struct run *run = &((struct sorter *)places)->runs[i];
	size_t n = run->end - run->first;

	return sorted_runs_count(run->slots + run->first, n < (size_t)max ? (int)n : max, limit);
}

static void move(void *places, uint32_t i, struct slot *out, int n)
{
	struct run *run = &((struct sorter *)places)->runs[i];

	memcpy(out, run->slots + run->first, n * sizeof(*out));
	run->first += n;
}

static const struct sorted_runs_ops all_runs = {.count = count, .move = move};

struct sorter *sorter_new(void)
{
	struct sorter *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->taking = sorted_runs_new(&all_runs, s);
	if (!s->taking || sorted_runs_reserve(s->taking, MAX_RUNS)) {
		sorter_free(s);
		return NULL;
	}
	return s;
}

void sorter_free(struct sorter *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < MAX_RUNS; i++)
		free(s->runs[i].slots);
	sorted_runs_free(s->taking);
	free(s);
}

/* Drops empty runs, keeping the order of the others, and reuses the space of taken slots. */
static void tidy(struct sorter *s)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < s->nr_runs; i++) {
		struct run run = s->runs[i];

		if (run.first == run.end) {
			s->runs[i].first = s->runs[i].end = 0;
			if (run.room > SPARE_ROOM) {
				free(run.slots);
				s->runs[i] = (struct run){};
			}
			continue;
		}
		if (run.first >= run.end - run.first) {
			run.end -= run.first;
			memcpy(run.slots, run.slots + run.first, run.end * sizeof(*run.slots));
			run.first = 0;
		}
		s->runs[i] = s->runs[kept];
		s->runs[kept] = run;
		s->tails[kept++] = s->tails[i];
	}
	s->nr_runs = kept;
	s->current = 0;
	s->is_tidy = true;
}

static int compare_sizes(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* Merges the shorter half of the runs into one. Choosing the short ones keeps the total cost at
 * n log n if the input has many runs, such as a ring dumped backward. */
static int merge_short_runs(struct sorter *s)
{
	size_t sizes[MAX_RUNS] = {}, total = 0, shortest;
	unsigned int nr = 0, first = 0;
	int ends[MAX_RUNS / 2], end = 0;
	struct slot *from, *other, *merged;

	for (unsigned int i = 0; i < s->nr_runs; i++)
		sizes[i] = s->runs[i].end - s->runs[i].first;
	qsort(sizes, s->nr_runs, sizeof(sizes[0]), compare_sizes);
	shortest = sizes[MAX_RUNS / 2];
	for (unsigned int i = 0; i < MAX_RUNS / 2; i++)
		total += shortest;
	from = malloc(total * sizeof(*from));
	other = malloc(total * sizeof(*other));
	if (!from || !other || total > INT_MAX) {
		free(from);
		free(other);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < s->nr_runs && nr < MAX_RUNS / 2; i++) {
		size_t size = s->runs[i].end - s->runs[i].first;

		if (size > shortest)
			continue;
		/* The first of them has the highest tail, which is the tail of the merged run. */
		if (!nr)
			first = i;
		move(s, i, from + end, size);
		ends[nr++] = end += size;
	}
	merged = sorted_runs_merge(from, other, ends, nr);
	free(merged == from ? other : from);
	free(s->runs[first].slots);
	s->runs[first] = (struct run){.slots = merged, .end = end, .room = total};
	tidy(s);
	return 0;
}

static int grow(struct run *run)
{
	size_t room = run->room ? run->room * 2 : FIRST_ROOM;
	struct slot *slots = realloc(run->slots, room * sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	run->slots = slots;
	run->room = room;
	return 0;
}

/* Returns the first run that ends at or before time; nr_runs if there is none. */
static unsigned int find_run(const struct sorter *s, uint64_t time)
{
	unsigned int low = 0, high = s->nr_runs;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (s->tails[mid] <= time)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int make_room(struct sorter *s)
{
	if (s->nr_runs < MAX_RUNS)
		return 0;
	tidy(s);
	return s->nr_runs < MAX_RUNS ? 0 : merge_short_runs(s);
}

/* Returns the run for a slot with this time, with room for it; NULL without memory. Not inlined, to
 * keep the common case of sorter_add() short. */
static struct run *__attribute__((noinline)) choose_run(struct sorter *s, uint64_t time)
{
	unsigned int i = find_run(s, time);
	struct run *run;

	if (i == s->nr_runs) {
		if (make_room(s))
			return NULL;
		i = s->nr_runs;
	}
	run = &s->runs[i];
	if (run->end == run->room && grow(run))
		return NULL;
	if (i == s->nr_runs)
		s->nr_runs++;
	s->current = i;
	return run;
}

int sorter_add(struct sorter *s, uint64_t time, const void *rec, uint32_t ring)
{
	unsigned int i = s->current;
	struct run *run = &s->runs[i];

	if (i >= s->nr_runs || s->tails[i] > time || (i && s->tails[i - 1] <= time) ||
	    run->end == run->room) {
		run = choose_run(s, time);
		if (!run)
			return -ENOMEM;
	}
	run->slots[run->end++] = (struct slot){.time = time, .rec = rec, .ring = ring};
	s->tails[s->current] = time;
	s->is_tidy = false;
	return 0;
}

uint64_t sorter_oldest(const struct sorter *s)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned int i = 0; i < s->nr_runs; i++) {
		const struct run *run = &s->runs[i];

		if (run->first < run->end && run->slots[run->first].time < oldest)
			oldest = run->slots[run->first].time;
	}
	return oldest;
}

static bool is_empty(const struct sorter *s)
{
	for (unsigned int i = 0; i < s->nr_runs; i++)
		if (s->runs[i].first < s->runs[i].end)
			return false;
	return true;
}

int sorter_take(struct sorter *s, struct slot *out, int max, uint64_t until)
{
	int n = 0;

	if (!s->is_tidy)
		tidy(s);
	if (s->nr_runs && s->tails[0] < until)
		until = s->tails[0]; /* the newest slot */
	while (n < max && !is_empty(s) && sorter_oldest(s) <= until)
		n += sorted_runs_take(s->taking, s->nr_runs, sorter_oldest(s), until, out + n,
				      max - n);
	return n;
}
