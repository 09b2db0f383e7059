/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/gaps.h"
#include <string.h>
#include "wire/own_records.h"

void gaps_add(struct gaps *g, uint64_t from, uint64_t to, uint64_t lost)
{
	struct gap *last = &g->list[GAPS - 1];

	if (g->n < GAPS) {
		g->list[g->n++] = (struct gap){from, to > from ? to : from, lost};
		return;
	}
	last->lost = last->lost && lost ? last->lost + lost : 0;
	last->to = to > last->to ? to : last->to;
}

/* What was read since the last group began. */
static struct gaps_read read_since(const struct gaps *g, const struct gaps_read *read)
{
	return (struct gaps_read){read->samples - g->before_group.samples,
				  read->lost - g->before_group.lost,
				  read->unknown - g->before_group.unknown};
}

/* Returns how much of what is told before a group was not reported by records: they were in groups
 * that did not arrive. */
static uint64_t unreported(uint64_t told, uint64_t told_before, uint64_t reported)
{
	return told > told_before && told - told_before > reported ? told - told_before - reported
								   : 0;
}

/* Adds what is missing before a group of the same sender. */
static void add_missing(struct gaps *g, const struct wire_group *group, uint64_t first,
			const struct gaps_read *read)
{
	struct gaps_read since = g->is_broken ? g->since : read_since(g, read);
	uint64_t lost = group->events_before - g->events_after;

	g->missing += lost;
	if (!lost && !g->is_broken && group->seq == g->seq + 1)
		return;
	lost += unreported(group->lost_before, g->lost_before, since.lost);
	if (unreported(group->unknown_before, g->unknown_before, since.unknown))
		gaps_add(g, g->last_time, first, 0);
	else if (lost)
		gaps_add(g, g->last_time, first, lost);
}

void gaps_group(struct gaps *g, const struct wire_group *group, uint64_t epoch, uint64_t first,
		uint64_t last, const struct gaps_read *read)
{
	bool same = g->epoch == epoch && group->events_before >= g->events_after;
	bool goes_on = same && group->events_before >= g->told_after;

	g->is_unsure |= g->has_group && !goes_on;
	g->made += group->events +
		   (g->has_group && goes_on ? group->events_before - g->told_after : 0);
	g->told_after = group->events_before + group->events;
	if (g->has_group && same)
		add_missing(g, group, first, read);
	else if (g->has_group)
		gaps_add(g, g->last_time, first, 0);
	g->has_group = true;
	g->is_broken = false;
	g->epoch = epoch;
	g->seq = group->seq;
	g->last_time = last;
	g->events_before = group->events_before;
	g->events_after = group->events_before + group->events;
	g->lost_before = group->lost_before;
	g->unknown_before = group->unknown_before;
	g->before_group = *read;
}

void gaps_broken(struct gaps *g, const struct gaps_read *read)
{
	struct gaps_read since = read_since(g, read);

	if (!g->has_group || g->is_broken)
		return;
	g->is_broken = true;
	g->since = since;
	if (g->events_before + since.samples < g->events_after)
		g->events_after = g->events_before + since.samples;
}

const struct gap *gaps_next(const struct gaps *g, uint64_t until)
{
	return g->next < g->n && g->list[g->next].from <= until ? &g->list[g->next] : NULL;
}

void gaps_take(struct gaps *g)
{
	g->next++;
}

void gaps_recycle(struct gaps *g)
{
	memmove(g->list, g->list + g->next, (g->n - g->next) * sizeof(g->list[0]));
	g->n -= g->next;
	g->next = 0;
}
