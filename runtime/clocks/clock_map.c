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
	return 0;
}

int clock_map_ready(const struct clock_map *map)
{
	return map->n > 1 || (map->n && map->rate > 0);
}

int clock_map_beyond(const struct clock_map *map, uint64_t from)
{
	return !map->n || difference(from, map->pairs[map->n - 1].from) > 0;
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
	double before = 0, after = 0;

	if (segment > 0)
		before = fabs(pairs[segment].rate - pairs[segment - 1].rate);
	if (segment + 2 < map->n)
		after = fabs(pairs[segment + 1].rate - pairs[segment].rate);
	return fmax(before, after);
}

double clock_map_error(struct clock_map *map, uint64_t from)
{
	uint32_t i = find(map, from, 0) - map->pairs;
	const struct pair *a, *b;
	double since, until, beyond, span;

	if (map->n < 2)
		return map->pairs[0].error;
	if (i + 1 == map->n)
		i--;
	a = map->pairs + i;
	b = a + 1;
	since = difference(from, a->from);
	until = difference(b->from, from);
	if (since >= 0 && until >= 0)
		return fmax(a->error, b->error) + rate_change(map, i) * fmin(since, until);
	/* The rate may go on changing as it did. It and its change are as uncertain as the
	 * readings. */
	beyond = fmax(-since, -until);
	span = since + until;
	return fmax(a->error, b->error) + beyond / span * 3 * (a->error + b->error) +
	       beyond * (1 + beyond / span) * rate_change(map, i);
}
