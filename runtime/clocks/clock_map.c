/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/clock_map.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 1024 };

struct pair {
	uint64_t from, to;
	double error;
	double rate; /* until the next pair; of the last one: that before it */
};

struct clock_map {
	double rate; /* if there is a single pair; 0: unknown */
	uint32_t n;
	uint32_t hint; /* the segment that was used last */
	double wobble; /* how much the rate lately changed from one segment to the next */
	struct pair pairs[PAIRS_MAX];
};

struct clock_map *clock_map_new(double rate)
{
	struct clock_map *map = malloc(sizeof(*map));

	if (map) {
		map->rate = rate;
		map->n = map->hint = 0;
	}
	return map;
}

void clock_map_free(struct clock_map *map)
{
	free(map);
}

void clock_map_clear(struct clock_map *map)
{
	map->n = map->hint = 0;
}

/* Clocks wrap around, so only differences can be compared. */
static double difference(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b);
}

static double rate_between(const struct pair *a, const struct pair *b)
{
	return difference(b->to, a->to) / difference(b->from, a->from);
}

/* How far the rate of a segment may be off because of the readings at its ends. */
static double rate_error(const struct pair *a)
{
	return (a[0].error + a[1].error) / difference(a[1].from, a[0].from);
}

/* How much the rate may change from one segment to the next; 0 if the readings explain it. */
static double kink(const struct pair *a)
{
	double change = fabs(a[1].rate - a[0].rate);
	double noise = rate_error(a) + rate_error(a + 1);

	return change > noise ? change + noise : 0;
}

/* Drops every second pair of the older half. */
static void thin_out(struct clock_map *map)
{
	struct pair *pairs = map->pairs;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < PAIRS_MAX / 2; i += 2)
		pairs[kept++] = pairs[i];
	memmove(pairs + kept, pairs + PAIRS_MAX / 2, PAIRS_MAX / 2 * sizeof(*pairs));
	for (uint32_t i = 0; i < kept; i++)
		pairs[i].rate = rate_between(&pairs[i], &pairs[i + 1]);
	map->n = kept + PAIRS_MAX / 2;
	map->hint = 0;
}

/* Notes how much the rate has changed. A clock that is steady now may change again, as it did some
 * segments ago; and by 1 ppm if that is not known. */
static void note_change(struct clock_map *map)
{
	const struct pair *last = map->pairs + map->n - 1;

	if (map->n == 2)
		map->wobble = last->rate * 1e-6;
	else if (map->n > 2)
		map->wobble = fmax(map->wobble * 0.9, kink(last - 2));
}

int clock_map_add(struct clock_map *map, uint64_t from, uint64_t to, double error)
{
	struct pair *last = map->pairs + map->n - 1, *new;

	if (map->n && (difference(from, last->from) <= 0 || difference(to, last->to) <= 0))
		return -ERANGE;
	if (map->n == PAIRS_MAX)
		thin_out(map);
	new = map->pairs + map->n;
	*new = (struct pair){.from = from, .to = to, .error = error, .rate = map->rate};
	if (map->n++) {
		new[-1].rate = rate_between(new - 1, new);
		new->rate = new[-1].rate;
	}
	note_change(map);
	return 0;
}

int clock_map_ready(const struct clock_map *map)
{
	return map->n > 1 || (map->n && map->rate > 0);
}

static int is_before(const struct pair *pair, uint64_t at, int by_to)
{
	return by_to ? difference(pair->to, at) <= 0 : difference(pair->from, at) <= 0;
}

/* Returns the last pair at or before a time, else the first one. */
static const struct pair *find(struct clock_map *map, uint64_t at, int by_to)
{
	uint32_t low = map->hint, high = map->n;

	if (!is_before(map->pairs + low, at, by_to))
		low = 0;
	else if (low + 1 == map->n || !is_before(map->pairs + low + 1, at, by_to))
		return map->pairs + low;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (is_before(map->pairs + middle, at, by_to))
			low = middle;
		else
			high = middle;
	}
	map->hint = low;
	return map->pairs + low;
}

/* Rounds to the nearest integer, and stays defined for absurd distances. */
static uint64_t rounded(double distance)
{
	return fabs(distance) < 0x1p62 ? (uint64_t)llrint(distance) : 0;
}

uint64_t clock_map_to(struct clock_map *map, uint64_t from)
{
	const struct pair *pair = find(map, from, 0);

	return pair->to + rounded(difference(from, pair->from) * pair->rate);
}

uint64_t clock_map_from(struct clock_map *map, uint64_t to)
{
	const struct pair *pair = find(map, to, 1);

	return pair->from + rounded(difference(to, pair->to) / pair->rate);
}

double clock_map_rate(struct clock_map *map, uint64_t from)
{
	return find(map, from, 0)->rate;
}

/* By how much the rate differs from those of the segments before and after. */
static double rate_change(const struct clock_map *map, uint32_t segment)
{
	const struct pair *pairs = map->pairs;
	double before = segment > 0 ? kink(pairs + segment - 1) : 0;
	double after = segment + 2 < map->n ? kink(pairs + segment) : 0;

	return fmax(before, after);
}

double clock_map_error(struct clock_map *map, uint64_t from)
{
	uint32_t i = find(map, from, 0) - map->pairs;
	const struct pair *a, *b;
	double since, until, beyond, error, change;

	if (map->n < 2)
		return map->pairs[0].error;
	if (i + 1 == map->n)
		i--;
	a = map->pairs + i;
	b = a + 1;
	since = difference(from, a->from);
	until = difference(b->from, from);
	change = rate_change(map, i);
	/* One error is that of the readings, the other hides a change of the rate. */
	error = a->error + b->error;
	if (since >= 0 && until >= 0)
		return error + change * fmin(since, until);
	/* The rate is as uncertain as the readings, and may go on changing. */
	change = fmax(change, map->wobble);
	beyond = fmax(-since, -until);
	return error + 3 * rate_error(a) * beyond +
	       change * beyond * (1 + beyond / (since + until));
}
