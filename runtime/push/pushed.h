/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pushed: the events whose samples are sent, and how the header of each stream describes them.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct decoder;
struct error;
struct event_request;
struct source;
struct wire_event;

struct pushed_attr {
	uint64_t outlets;    /* bit set: where its samples are sent */
	uint32_t time_place; /* of its samples, see push_clock_place() */
	uint64_t id;	     /* that the header of the stream names, one of several */
	uint64_t taken;	     /* samples that only the outlets got */
};

struct pushed {
	struct source *source;
	struct event_request *requests; /* that are sent */
	uint32_t nr_requests;
	struct pushed_attr *attrs; /* of the source's decoder */
	int nr_attrs;
	bool has_own_clock; /* times are not those of the attributes' clock, see push_clock.h */
	/* Live events have an id for each CPU or thread, and more with each CPU that comes online.
	 * The stream has one for each event, which its header names. So it has if its records come
	 * from another machine whose sender was started again, with other ids. */
	bool renumbers;
	const struct decoder *first,
		*decoder; /* of the headers, and of the records that come now */
	int *places;	  /* of its attributes: index in attrs, -1: none; NULL: as in attrs */
};

/* Notes an event that is sent. Returns 0 or -ENOMEM with a message. */
int pushed_add(struct pushed *p, const struct event_request *req, struct error *err);
/* Finds the attributes of the events, once the source is open. The same. */
int pushed_list(struct pushed *p, struct error *err);
/* The records that follow belong to the attributes of this decoder. Returns 0, or a negative errno
 * with a message if they cannot be parts of the streams that have begun. */
int pushed_follow(struct pushed *p, const struct decoder *now, struct error *err);
/* Describes the events of the outlet with this bit, allocated in one piece. NULL with a message. */
struct wire_event *pushed_describe(struct pushed *p, int bit, uint32_t *n, struct error *err);
void pushed_clear(struct pushed *p);

/* Gives a copy of a record the id that the header of the stream names. Records of tasks belong to
 * no event. */
static inline void pushed_renumber(const struct pushed *p, struct perf_event_header *rec, int index)
{
	uint64_t *words = (uint64_t *)(rec + 1);

	if (rec->type == PERF_RECORD_SAMPLE)
		words[0] = p->attrs[index].id;
	else
		words[(rec->size - sizeof(*rec)) / 8 - 1] = 0;
}
