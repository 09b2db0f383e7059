/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/push_clock.h"
#include <stddef.h>
#include "clocks/clock_axis.h"

enum {
	BEFORE_TIME = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID,
	FROM_TIME = PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
		    PERF_SAMPLE_IDENTIFIER
};

bool push_clock_ready(struct push_clock *c)
{
	c->is_ready = !c->axis || c->is_ready || clock_axis_ready(c->axis);
	return c->is_ready;
}

bool push_clock_is_cycles(const struct push_clock *c)
{
	return c->axis && clock_axis_is_cycles(c->axis);
}

void push_clock_set_trailer(struct push_clock *c, const struct perf_event_attr *attr)
{
	c->trailer_at = attr->sample_id_all && (attr->sample_type & PERF_SAMPLE_TIME)
				? __builtin_popcountll(attr->sample_type & FROM_TIME)
				: 0;
}

uint32_t push_clock_place(const struct perf_event_attr *attr)
{
	return attr->sample_type & PERF_SAMPLE_TIME
		       ? __builtin_popcountll(attr->sample_type & BEFORE_TIME)
		       : UINT32_MAX;
}

/* Until the clock is ready, nobody gets records. */
uint64_t push_clock_convert(struct push_clock *c, uint64_t time)
{
	int64_t converted;

	if (!time || time == UINT64_MAX || !c->is_ready)
		return time;
	converted = clock_axis_time(c->axis, time);
	c->is_negative |= converted <= 0;
	return converted;
}

uint64_t *push_clock_find(const struct push_clock *c, struct perf_event_header *rec, uint32_t place)
{
	uint64_t *words = (uint64_t *)(rec + 1);
	uint32_t n = (rec->size - sizeof(*rec)) / sizeof(*words);

	if (rec->type != PERF_RECORD_SAMPLE)
		place = c->trailer_at && c->trailer_at <= n ? n - c->trailer_at : UINT32_MAX;
	return place < n ? &words[place] : NULL;
}
