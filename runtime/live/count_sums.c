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
	struct count_sums *sums = calloc(1, sizeof(*sums));

	if (sums)
		sums->nr_events = nr_events;
	return sums;
}

void count_sums_free(struct count_sums *sums)
{
	if (!sums)
		return;
	free(sums->ids);
	free(sums->cells);
	free(sums->counts);
	free(sums);
}

/* Returns the row with this id, or the one before which it belongs. */
static uint32_t place_of(const struct count_sums *sums, int32_t id)
{
	uint32_t low = 0, high = sums->nr_rows;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (sums->ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int grow(struct count_sums *sums)
{
	uint32_t room = sums->room ? sums->room * 2 : 16;
	size_t cells = (size_t)room * sums->nr_events;
	int32_t *ids = reallocarray(sums->ids, room, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	sums->ids = ids;
	struct cell *grown = reallocarray(sums->cells, cells, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	sums->cells = grown;
	struct count *counts = reallocarray(sums->counts, cells, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	sums->counts = counts;
	sums->room = room;
	return 0;
}

int count_sums_expect(struct count_sums *sums, int32_t id, uint32_t event)
{
	uint32_t row = place_of(sums, id), nr_after = sums->nr_rows - row;
	size_t size = sums->nr_events * sizeof(*sums->cells);

	if (!nr_after || sums->ids[row] != id) {
		if (sums->nr_rows == sums->room && grow(sums))
			return -ENOMEM;
		memmove(&sums->ids[row + 1], &sums->ids[row], nr_after * sizeof(*sums->ids));
		memmove(&sums->cells[(row + 1) * sums->nr_events],
			&sums->cells[row * sums->nr_events], nr_after * size);
		sums->ids[row] = id;
		memset(&sums->cells[row * sums->nr_events], 0, size);
		sums->nr_rows++;
	}
	sums->cells[row * sums->nr_events + event].expected = true;
	return 0;
}

void count_sums_add(struct count_sums *sums, int32_t id, uint32_t event, uint64_t value,
		    uint64_t enabled, uint64_t running)
{
	struct cell *c = &sums->cells[place_of(sums, id) * sums->nr_events + event];

	c->value += running < enabled && running ? (double)value * enabled / running : value;
	c->enabled += enabled;
	c->running += running;
}

void count_sums_take(struct count_sums *sums, struct counts *out)
{
	uint32_t n = sums->nr_rows * sums->nr_events;

	for (uint32_t i = 0; i < n; i++) {
		struct cell *c = &sums->cells[i];

		sums->counts[i].value = c->value;
		sums->counts[i].share = !c->expected ? -1
					: c->enabled ? (double)c->running / c->enabled
						     : 1;
		c->value = 0;
		c->enabled = c->running = 0;
	}
	*out = (struct counts){
		.nr_rows = sums->nr_rows,
		.nr_events = sums->nr_events,
		.ids = sums->ids,
		.values = sums->counts,
	};
}
