/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/count_sums.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct cell {
	double value;
	uint64_t enabled, running;
	bool expected;
};

struct count_sums {
	uint32_t nr_events, nr_rows, room;
	int32_t *ids;
	struct cell *cells;   /* nr_events per row */
	struct count *counts; /* the result of the last count_sums_take() */
};

struct count_sums *count_sums_new(uint32_t nr_events)
{
	struct count_sums *t = calloc(1, sizeof(*t));

	if (t)
		t->nr_events = nr_events;
	return t;
}

void count_sums_free(struct count_sums *t)
{
	if (!t)
		return;
	free(t->ids);
	free(t->cells);
	free(t->counts);
	free(t);
}

/* Returns the row with this id, or the one before which it belongs. */
static uint32_t place_of(const struct count_sums *t, int32_t id)
{
	uint32_t low = 0, high = t->nr_rows;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (t->ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int grow(struct count_sums *t)
{
	uint32_t room = t->room ? t->room * 2 : 16;
	size_t cells = (size_t)room * t->nr_events;
	int32_t *ids = reallocarray(t->ids, room, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	t->ids = ids;
	struct cell *grown = reallocarray(t->cells, cells, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	t->cells = grown;
	struct count *counts = reallocarray(t->counts, cells, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	t->counts = counts;
	t->room = room;
	return 0;
}

int count_sums_expect(struct count_sums *t, int32_t id, uint32_t event)
{
	uint32_t row = place_of(t, id), behind = t->nr_rows - row;
	size_t size = t->nr_events * sizeof(*t->cells);

	if (!behind || t->ids[row] != id) {
		if (t->nr_rows == t->room && grow(t))
			return -ENOMEM;
		memmove(&t->ids[row + 1], &t->ids[row], behind * sizeof(*t->ids));
		memmove(&t->cells[(row + 1) * t->nr_events], &t->cells[row * t->nr_events],
			behind * size);
		t->ids[row] = id;
		memset(&t->cells[row * t->nr_events], 0, size);
		t->nr_rows++;
	}
	t->cells[row * t->nr_events + event].expected = true;
	return 0;
}

void count_sums_add(struct count_sums *t, int32_t id, uint32_t event, uint64_t value,
		    uint64_t enabled, uint64_t running)
{
	struct cell *c = &t->cells[place_of(t, id) * t->nr_events + event];

	c->value += running < enabled && running ? (double)value * enabled / running : value;
	c->enabled += enabled;
	c->running += running;
}

void count_sums_take(struct count_sums *t, struct counts *out)
{
	uint32_t n = t->nr_rows * t->nr_events;

	for (uint32_t i = 0; i < n; i++) {
		struct cell *c = &t->cells[i];

		t->counts[i].value = c->value;
		t->counts[i].share = !c->expected ? -1
				     : c->enabled ? (double)c->running / c->enabled
						  : 1;
		c->value = 0;
		c->enabled = c->running = 0;
	}
	*out = (struct counts){
		.nr_rows = t->nr_rows,
		.nr_events = t->nr_events,
		.ids = t->ids,
		.values = t->counts,
	};
}
