/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Push clock: the clock of the times that are sent, if it is not that of the source: --tsc,
 * --kvmclock and --clock-offset convert them, in the records and in all that tells about them.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct clock_axis;

struct push_clock {
	struct clock_axis *axis; /* NULL: times are sent as they are */
	int64_t offset;		 /* what the axis adds, ns or cycles */
	bool is_ready, is_negative;
	uint32_t trailer_at; /* words between the time and the end of records other than samples;
			      * 0: there is no time */
};

/* Looks whether times can be converted: those of a guest need its clock first. */
bool push_clock_ready(struct push_clock *c);
bool push_clock_is_cycles(const struct push_clock *c);
/* Notes where the time is in records other than samples. */
void push_clock_set_trailer(struct push_clock *c, const struct perf_event_attr *attr);
/* Returns the words before the time of an attribute's samples; UINT32_MAX: there is no time. */
uint32_t push_clock_place(const struct perf_event_attr *attr);

uint64_t push_clock_convert(struct push_clock *c, uint64_t time);
/* Returns where the time is in a copy of a record; NULL: it has none. place: that of its samples.
 */
uint64_t *push_clock_find(const struct push_clock *c, struct perf_event_header *rec,
			  uint32_t place);

/* Converts a time. 0 and UINT64_MAX stay: they are not times. */
static inline uint64_t push_clock_time(struct push_clock *c, uint64_t time)
{
	return __builtin_expect(!c->axis, 1) ? time : push_clock_convert(c, time);
}
