/* SPDX-License-Identifier: GPL-2.0-only */
/* Patience sort that can be drained at any time ("impatience sort"): a slot is appended to the
 * first run whose last time is not above its own, or starts a run. So the last times of the runs
 * fall from one run to the next, there are never more runs than the longest strictly falling
 * sequence of the input, and of equal times the one added first lies in the same or an earlier
 * run. Neighbours mostly belong to the same run: then adding costs two compares. */
#include "recording/sorter.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_RUNS = 1024,
	FIRST_ROOM = 64,     /* slots */
	SPARE_ROOM = 1 << 14 /* slots of memory that an unused run may keep */
};

struct run {
	struct slot *slots;
	size_t first, end, room; /* slots[first..end) wait */
};

struct sorter {
	unsigned int nr_runs, current; /* current: got the last slot */
	unsigned int nr_heap;
	bool heap_valid;
	uint64_t tails[MAX_RUNS];  /* time of each run's last slot, falling */
	uint64_t heads[MAX_RUNS];  /* time of each run's first slot, for those in the heap */
	uint16_t heap[MAX_RUNS];   /* runs by head, of equal ones the lower run first */
	struct run runs[MAX_RUNS]; /* those from nr_runs on are empty, some with memory */
};

struct sorter *sorter_new(void)
{
	return calloc(1, sizeof(struct sorter));
}

void sorter_free(struct sorter *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < MAX_RUNS; i++)
		free(s->runs[i].slots);
	free(s);
}

static bool before(const struct sorter *s, unsigned int a, unsigned int b)
{
	if (s->heads[a] != s->heads[b])
		return s->heads[a] < s->heads[b];
	return a < b;
}

static void sift_down(struct sorter *s, unsigned int at)
{
	uint16_t run = s->heap[at];

	for (;;) {
		unsigned int child = 2 * at + 1;

		if (child >= s->nr_heap)
			break;
		if (child + 1 < s->nr_heap && before(s, s->heap[child + 1], s->heap[child]))
			child++;
		if (before(s, run, s->heap[child]))
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = run;
}

static void build_heap(struct sorter *s, const bool *chosen)
{
	s->nr_heap = 0;
	for (unsigned int i = 0; i < s->nr_runs; i++) {
		if (chosen && !chosen[i])
			continue;
		s->heads[i] = s->runs[i].slots[s->runs[i].first].time;
		s->heap[s->nr_heap++] = i;
	}
	for (unsigned int i = s->nr_heap / 2; i-- > 0;)
		sift_down(s, i);
}

/* Drops empty runs, keeping the order of the others, and moves what was taken out of the way. */
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
	s->heap_valid = false;
}

/* Corrects the heap for what was taken from its run number `at`; those below it are in order. */
static void renew(struct sorter *s, unsigned int at)
{
	const struct run *run = &s->runs[s->heap[at]];

	if (run->first < run->end)
		s->heads[s->heap[at]] = run->slots[run->first].time;
	else
		s->heap[at] = s->heap[--s->nr_heap];
	if (at < s->nr_heap)
		sift_down(s, at);
}

/* Takes slots with time <= until from a run. */
static size_t take_run(struct run *run, struct slot *out, size_t max, uint64_t until)
{
	const struct slot *from = run->slots + run->first;
	size_t left = run->end - run->first < max ? run->end - run->first : max, n = 0;

	for (; n < left && from[n].time <= until; n++)
		out[n] = from[n];
	run->first += n;
	return n;
}

/* Merges slots with time <= until of two runs, until one is empty or out is full. Which run comes
 * next cannot be predicted, so nothing in the loop branches on it. */
static size_t take_two(struct run *low, struct run *high, struct slot *out, size_t max,
		       uint64_t until)
{
	size_t n = 0;

	while (n < max && low->first < low->end && high->first < high->end) {
		const struct slot *a = low->slots + low->first, *b = high->slots + high->first;
		size_t left_a = low->end - low->first, left_b = high->end - high->first;
		size_t safe = left_a < left_b ? left_a : left_b, taken_a = 0, i = 0;

		if (safe > max - n)
			safe = max - n;
		for (; i < safe; i++) {
			const struct slot *x = a + taken_a, *y = b + (i - taken_a);
			size_t is_a = x->time <= y->time;
			const struct slot *choice[] = {y, x}, *next = choice[is_a];

			if (next->time > until)
				break;
			out[n + i] = *next;
			taken_a += is_a;
		}
		n += i;
		low->first += taken_a;
		high->first += i - taken_a;
		if (i < safe)
			break;
	}
	return n;
}

/* Takes from the first two runs of the heap up to where the third one comes first. */
static size_t take_stretch(struct sorter *s, struct slot *out, size_t max, uint64_t until)
{
	unsigned int first = s->heap[0], at = 1, second;
	uint64_t third = UINT64_MAX;
	size_t n;

	if (s->nr_heap == 1) {
		n = take_run(&s->runs[first], out, max, until);
		renew(s, 0);
		return n;
	}
	if (s->nr_heap > 2 && before(s, s->heap[2], s->heap[1]))
		at = 2;
	second = s->heap[at];
	for (unsigned int i = 1; i < s->nr_heap && i <= 2 * at + 2; i++)
		if (i != at && s->heads[s->heap[i]] < third)
			third = s->heads[s->heap[i]];
	if (third == s->heads[first]) {
		n = take_run(&s->runs[first], out, 1, third);
	} else {
		if (third <= until)
			until = third - 1;
		n = first < second ? take_two(&s->runs[first], &s->runs[second], out, max, until)
				   : take_two(&s->runs[second], &s->runs[first], out, max, until);
	}
	renew(s, at);
	renew(s, 0);
	return n;
}

static size_t merge(struct sorter *s, struct slot *out, size_t max, uint64_t until)
{
	size_t n = 0;

	while (s->nr_heap && n < max && s->heads[s->heap[0]] <= until)
		n += take_stretch(s, out + n, max - n, until);
	return n;
}

static int compare_sizes(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* Merges the shorter half of the runs into one. Taking the short ones keeps the whole at
 * n log n where the input is no interleaving of few runs (a ring dumped backwards, say). */
static int merge_short_runs(struct sorter *s)
{
	size_t sizes[MAX_RUNS] = {}, total = 0;
	bool chosen[MAX_RUNS] = {};
	unsigned int nr = 0, first = 0;
	struct run merged = {};

	for (unsigned int i = 0; i < s->nr_runs; i++)
		sizes[i] = s->runs[i].end - s->runs[i].first;
	qsort(sizes, s->nr_runs, sizeof(sizes[0]), compare_sizes);
	for (unsigned int i = s->nr_runs; i-- > 0 && nr < MAX_RUNS / 2;) {
		size_t size = s->runs[i].end - s->runs[i].first;

		if (size > sizes[MAX_RUNS / 2])
			continue;
		chosen[first = i] = true;
		total += size;
		nr++;
	}
	merged.slots = malloc(total * sizeof(*merged.slots));
	if (!merged.slots)
		return -ENOMEM;
	merged.end = merged.room = total;
	build_heap(s, chosen);
	merge(s, merged.slots, total, UINT64_MAX);
	/* The first of the chosen has the highest tail, which is that of the merged run. */
	free(s->runs[first].slots);
	s->runs[first] = merged;
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

/* The first run that ends at or before time; nr_runs without one. */
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

static int make_place(struct sorter *s)
{
	if (s->nr_runs < MAX_RUNS)
		return 0;
	tidy(s);
	return s->nr_runs < MAX_RUNS ? 0 : merge_short_runs(s);
}

/* The run for a slot of this time, with room for it; NULL without memory. Not inlined, to keep
 * the common case of sorter_add() short. */
static struct run *__attribute__((noinline)) choose_run(struct sorter *s, uint64_t time)
{
	unsigned int i = find_run(s, time);
	struct run *run;

	if (i == s->nr_runs) {
		if (make_place(s))
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
	s->heap_valid = false;
	return 0;
}

static void need_heap(struct sorter *s)
{
	if (s->heap_valid)
		return;
	tidy(s);
	build_heap(s, NULL);
	s->heap_valid = true;
}

int sorter_take(struct sorter *s, struct slot *out, int max, uint64_t until)
{
	need_heap(s);
	return merge(s, out, max, until);
}

uint64_t sorter_oldest(struct sorter *s)
{
	need_heap(s);
	return s->nr_heap ? s->heads[s->heap[0]] : UINT64_MAX;
}
