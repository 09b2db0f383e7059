/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An array of pointers for each table. It is nearly sorted as it comes: late events are moved to
 * their place from the young end. Dropped rows leave a gap at the front, which is closed when it is
 * as long as the rest.
 */
#include "sql/rows.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "event.h"
#include "relations/timeline.h"

enum { MIN_ROWS = 1024, MAX_ROWS = 1 << 28, DROP_PART = 64, NO_TABLE = UINT16_MAX };

struct table_rows {
	struct event **at; /* first to first + count */
	uint32_t first, count, size;
};

struct rows {
	struct timeline *keep;
	struct table_rows *tables;
	uint32_t nr_tables;
	struct rows_stats stats;
	uint16_t table_of[EVENT_CLASSES];
};

struct rows *rows_new(uint64_t max_bytes)
{
	struct rows *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->keep = timeline_new(max_bytes);
	if (!r->keep) {
		free(r);
		return NULL;
	}
	r->stats.dropped_until = -INFINITY;
	memset(r->table_of, 0xff, sizeof(r->table_of));
	return r;
}

void rows_free(struct rows *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->nr_tables; i++)
		free(r->tables[i].at);
	free(r->tables);
	timeline_free(r->keep);
	free(r);
}

static bool can_add(const struct rows *r, uint16_t class)
{
	return class < EVENT_CLASSES && class >= EVENT_FIRST && r->table_of[class] == NO_TABLE;
}

int rows_add_table(struct rows *r, uint16_t class)
{
	struct table_rows *tables;

	if (!can_add(r, class))
		return -EINVAL;
	tables = reallocarray(r->tables, r->nr_tables + 1, sizeof(*tables));
	if (!tables)
		return -ENOMEM;
	tables[r->nr_tables] = (struct table_rows){0};
	r->tables = tables;
	r->table_of[class] = r->nr_tables;
	return r->nr_tables++;
}

int rows_share_table(struct rows *r, uint16_t class, uint32_t table)
{
	if (!can_add(r, class) || table >= r->nr_tables)
		return -EINVAL;
	r->table_of[class] = table;
	return 0;
}

static struct event **rows_at(const struct table_rows *t)
{
	return t->at + t->first;
}

/* Drops the oldest n rows of a table. */
static void drop(struct rows *r, struct table_rows *t, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		timeline_release(r->keep, rows_at(t)[i]);
	t->first += n;
	t->count -= n;
	if (t->first < t->count)
		return;
	if (t->count)
		memmove(t->at, rows_at(t), t->count * sizeof(*t->at));
	t->first = 0;
}

static uint32_t before(const struct table_rows *t, double time)
{
	uint32_t low = 0, high = t->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (rows_at(t)[middle]->time < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Drops the oldest events of all tables up to the same time. Returns -1 if there are none. */
static int drop_oldest(struct rows *r)
{
	struct table_rows *oldest = NULL;
	double until;

	for (struct table_rows *t = r->tables; t < r->tables + r->nr_tables; t++)
		if (t->count && (!oldest || rows_at(t)[0]->time < rows_at(oldest)[0]->time))
			oldest = t;
	if (!oldest)
		return -1;
	until = rows_at(oldest)[oldest->count / DROP_PART]->time;
	for (struct table_rows *t = r->tables; t < r->tables + r->nr_tables; t++) {
		uint32_t n = before(t, nextafter(until, INFINITY));

		if (!n)
			continue;
		drop(r, t, n);
		r->stats.dropped += n;
	}
	if (r->stats.dropped_until < until)
		r->stats.dropped_until = until;
	return 0;
}

/* Makes room for one more row. */
static int grow(struct table_rows *t)
{
	uint32_t size = t->size ? 2 * t->size : MIN_ROWS;
	struct event **at;

	if (t->first + t->count < t->size)
		return 0;
	if (size > MAX_ROWS)
		return -1;
	at = reallocarray(t->at, size, sizeof(*at));
	if (!at)
		return -1;
	t->at = at;
	t->size = size;
	return 0;
}

static void add(struct rows *r, struct table_rows *t, const struct event *ev)
{
	struct event *copy, **at;
	uint32_t i;

	r->stats.added++;
	while (grow(t) || !(copy = timeline_keep(r->keep, ev))) {
		if (!drop_oldest(r))
			continue;
		r->stats.dropped++;
		if (r->stats.dropped_until < ev->time)
			r->stats.dropped_until = ev->time;
		return;
	}
	at = rows_at(t);
	for (i = t->count++; i && at[i - 1]->time > copy->time; i--)
		at[i] = at[i - 1];
	at[i] = copy;
}

void rows_add(struct rows *r, const struct event *events, int n)
{
	for (int i = 0; i < n; i++) {
		uint16_t class = events[i].class;

		if (class < EVENT_CLASSES && r->table_of[class] != NO_TABLE)
			add(r, &r->tables[r->table_of[class]], &events[i]);
	}
}

void rows_clear(struct rows *r)
{
	for (struct table_rows *t = r->tables; t < r->tables + r->nr_tables; t++)
		drop(r, t, t->count);
}

uint32_t rows_count(const struct rows *r, uint32_t table)
{
	return r->tables[table].count;
}

struct event *const *rows_of(const struct rows *r, uint32_t table)
{
	return rows_at(&r->tables[table]);
}

uint32_t rows_before(const struct rows *r, uint32_t table, double time)
{
	return before(&r->tables[table], time);
}

uint64_t rows_bytes(const struct rows *r)
{
	return timeline_bytes(r->keep);
}

void rows_read_stats(const struct rows *r, struct rows_stats *out)
{
	*out = r->stats;
}
