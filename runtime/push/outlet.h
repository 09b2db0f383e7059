/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Outlet: one address that events are sent to, and the stream of records that all of its receivers
 * get. Records are collected in groups; without receivers they are only counted.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>
#include "error.h"
#include "push/group.h"
#include "push/outlets.h"
#include "wire/channel.h"
#include "wire/preamble.h"

struct receiver;

enum {
	RECEIVERS_MAX = 64,	/* of an outlet */
	UNPROVEN_MAX = 16,	/* clients that have not yet proven that they know the secret */
	FLUSH_AFTER = 20000000, /* ns: events do not wait longer for others to fill their group */
	RATE_TIME = 50000000	/* ns between two pairs that tell the rate of the TSC */
};

struct outlet {
	struct outlets *all;
	struct channel *channel;
	struct wire_event *events; /* of the stream; their ids follow in the same memory */
	uint32_t nr_events;
	struct receiver *receivers[RECEIVERS_MAX + UNPROVEN_MAX];
	uint32_t nr_receivers;
	int nr_listening;
	uint64_t retry_at;    /* when to open the device again, ns */
	uint64_t refused_at;  /* when a refusal was told, ns; 0: never */
	uint32_t refused;     /* clients since then */
	uint64_t accepted_at; /* when the period of these began */
	uint32_t accepted;    /* clients */
	uint64_t put_off_at;  /* when the first client since the last summary got no line */
	uint32_t untold;      /* accepted since then, without a line */
	struct {
		uint32_t receivers;
		uint64_t sent, dropped;
	} untold_gone; /* of these, and earlier ones, that hung up */

	struct group *group;	      /* NULL: nobody reads, so records are only counted */
	uint64_t produced;	      /* events so far */
	uint64_t lost;		      /* records that the kernel lost so far */
	uint32_t unknown;	      /* losses so far of which nobody knows how much was lost */
	uint64_t before, lost_before; /* the same when the group began */
	uint32_t unknown_before;
	uint64_t seq;
	uint64_t oldest, newest; /* times in the group */
	uint64_t promised;	 /* no older record comes, as the last group said */
	uint64_t now;		 /* of the last turn, CLOCK_MONOTONIC ns */
	uint64_t flushed_at, paired_at;
	uint64_t sent, dropped; /* events of receivers that ended */
};

/* Parses an address. NULL with a message. */
struct outlet *outlet_new(struct outlets *all, const char *address, struct error *err);
void outlet_free(struct outlet *o);
/* Listens, or opens the file. */
int outlet_open(struct outlet *o, struct error *err);
/* Sets the events of the stream. Takes them over, allocated in one piece. */
void outlet_set_events(struct outlet *o, struct wire_event *events, uint32_t n);

/* Ends the group and adds it to the queues of all receivers. No older record than last_time comes
 * any more. */
void outlet_flush(struct outlet *o, uint64_t last_time);
/* Accepts receivers, reads what they sent, and sends what it can. now: CLOCK_MONOTONIC. horizon: no
 * older records come, on the clock that is sent. called: a descriptor of the poller is ready.
 * Negative errno with a message: a file cannot be written; -EPIPE: the reader of standard output is
 * gone. */
int outlet_turn(struct outlet *o, uint64_t now, uint64_t horizon, bool called, struct error *err);
/* Ends the stream in an orderly way; outlet_turn() then sends the rest. */
void outlet_end(struct outlet *o);
/* Whether more records would be dropped, by a receiver or because there is none. */
bool outlet_is_full(const struct outlet *o);
/* Whether a receiver has not got all. */
bool outlet_is_behind(const struct outlet *o);

/* Adds a copy of a record, and returns it; NULL if nobody reads. */
static inline struct perf_event_header *outlet_add(struct outlet *o,
						   const struct perf_event_header *rec,
						   uint64_t time)
{
	struct group *g = o->group;
	uint8_t *to;

	if (__builtin_expect(!g || g->size + rec->size > GROUP_ROOM, 0)) {
		if (g)
			outlet_flush(o, o->newest);
		g = o->group;
		if (!g)
			return NULL;
	}
	to = g->data + g->size;
	memcpy(to, rec, rec->size);
	g->size += rec->size;
	o->oldest = time < o->oldest ? time : o->oldest;
	o->newest = time > o->newest ? time : o->newest;
	return (struct perf_event_header *)to;
}
