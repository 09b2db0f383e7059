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
	struct count *counts; /* result of count_sums_take() */
};

struct count_sums *count_sums_new(uint32_t nr_events)
{
	struct count_sums *s = calloc(1, sizeof(*s));

	if (s)
		s->nr_events = nr_events;
	return s;
}

void count_sums_free(struct count_sums *s)
{
	if (!s)
		return;
	free(s->ids);
	free(s->cells);
	free(s->counts);
	free(s);
}

/* Returns the row with this id, or the row before which it belongs. */
static uint32_t find_row(const struct count_sums *s, int32_t id)
{
	uint32_t low = 0, high = s->nr_rows;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (s->ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int grow(struct count_sums *s)
{
	uint32_t room = s->room ? s->room * 2 : 16;
	size_t cells = (size_t)room * s->nr_events;
	int32_t *ids = reallocarray(s->ids, room, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	s->ids = ids;
	struct cell *grown = reallocarray(s->cells, cells, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	s->cells = grown;
	struct count *counts = reallocarray(s->counts, cells, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	s->counts = counts;
	s->room = room;
	return 0;
}

int count_sums_expect(struct count_sums *s, int32_t id, uint32_t event)
{
	uint32_t row = find_row(s, id), after = s->nr_rows - row;
	size_t size = s->nr_events * sizeof(*s->cells);

	if (!after || s->ids[row] != id) {
		if (s->nr_rows == s->room && grow(s))
			return -ENOMEM;
		memmove(&s->ids[row + 1], &s->ids[row], after * sizeof(*s->ids));
		memmove(&s->cells[(row + 1) * s->nr_events], &s->cells[row * s->nr_events],
			after * size);
		s->ids[row] = id;
		memset(&s->cells[row * s->nr_events], 0, size);
		s->nr_rows++;
	}
	s->cells[row * s->nr_events + event].expected = true;
	return 0;
}

void count_sums_add(struct count_sums *s, int32_t id, uint32_t event, uint64_t value,
		    uint64_t enabled, uint64_t running)
{
	struct cell *c = &s->cells[find_row(s, id) * s->nr_events + event];

	c->value += running < enabled && running ? (double)value * enabled / running : value;
	c->enabled += enabled;
	c->running += running;
}

void count_sums_take(struct count_sums *s, struct counts *out)
{
	uint32_t n = s->nr_rows * s->nr_events;

	for (uint32_t i = 0; i < n; i++) {
		struct cell *c = &s->cells[i];

		s->counts[i].value = c->value;
		s->counts[i].share = !c->expected ? -1
				     : c->enabled ? (double)c->running / c->enabled
						  : 1;
		c->value = 0;
		c->enabled = c->running = 0;
	}
	*out = (struct counts){
		.nr_rows = s->nr_rows,
		.nr_events = s->nr_events,
		.ids = s->ids,
		.values = s->counts,
	};
}
