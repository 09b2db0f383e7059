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

/* Returns the records that the kernel lost before a group and that no record has reported: they
 * were in groups that did not arrive. */
static uint64_t unreported(const struct gaps *g, const struct wire_group *group,
			   const struct gaps_read *read)
{
	uint64_t reported = g->is_broken ? g->lost_since : read->lost - g->before_group.lost;
	uint64_t lost = group->lost_before - g->lost_before;

	return group->lost_before > g->lost_before && lost > reported ? lost - reported : 0;
}

void gaps_group(struct gaps *g, const struct wire_group *group, uint64_t epoch, uint64_t first,
		uint64_t last, const struct gaps_read *read)
{
	bool same = g->has_group && g->epoch == epoch && group->events_before >= g->events_after;

	if (same && group->events_before > g->events_after)
		gaps_add(g, g->last_time, first,
			 group->events_before - g->events_after + unreported(g, group, read));
	else if (g->has_group && !same)
		gaps_add(g, g->last_time, first, 0);
	g->has_group = true;
	g->is_broken = false;
	g->epoch = epoch;
	g->last_time = last;
	g->events_before = group->events_before;
	g->events_after = group->events_before + group->events;
	g->lost_before = group->lost_before;
	g->before_group = *read;
}

void gaps_broken(struct gaps *g, const struct gaps_read *read)
{
	uint64_t arrived = g->events_before + read->samples - g->before_group.samples;

	if (!g->has_group || g->is_broken)
		return;
	g->is_broken = true;
	g->lost_since = read->lost - g->before_group.lost;
	if (arrived < g->events_after)
		g->events_after = arrived;
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
