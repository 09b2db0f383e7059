/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pairs: finds for each event the event before it that has the same key and stands one stage
 * earlier. The backup table holds at most one event per key: the latest that may start a pair.
 *
 * Keys are the key column of struct event, or for classes that pairs_set_key() names an integer of
 * the payload. Input is one ordered stream. An EVENT_LOST in it drops what is stored, and until the
 * hole's end no event takes part, for its partner may be lost; with per_instance only the ring that
 * has the hole is concerned. The rules, event by event, for a stage i of n:
 *
 * find = (i > 0 or cycle) and not EVENT_NO_SECOND: the stored event with this key is taken out of
 * the table, whatever stage it is of. It makes a pair if it is of the stage before (the last one
 * for stage 0 in a cycle) and strictly older.
 *
 * store = (i < n-1 or cycle) and not EVENT_NO_FIRST: the event is stored under its key, replacing
 * (and counting) one that is there already. Of two the younger stays, should an EVENT_LATE arrive.
 * With EVENT_NO_START it replaces that one but is not stored: nobody knows whether it starts.
 */
#pragma once
#include <stdint.h>

struct event;
struct pairs;
struct timeline;

struct pairs_config {
	uint32_t stages;
	uint32_t cycle;	       /* the last stage is followed by the first */
	uint32_t per_instance; /* the key is the cpu or thread: a hole concerns only its own ring */
	uint32_t max_keys;     /* beyond it the oldest stored event is evicted; 0: 2 Mi (256 MB) */
	struct timeline *keep; /* where started events are kept with their payload, must outlive
				  the pairs; NULL: not kept, and pair.first_event is NULL */
};

struct pair {
	double first_time, second_time; /* ns */
	double ns;			/* from the first to the second */
	uint32_t kind; /* which two classes: by stage, then by the first's and by the second's
			* place in its stage, both in the order of pairs_add_class() */
	int64_t key;
	uint16_t first_class, second_class;
	uint32_t second; /* index into the events that were fed */
	int32_t first_tid, first_cpu;
	struct event *first_event; /* kept copy, released by the next pairs_feed(); or NULL */
};

enum { PAIRS_NO_SECOND = 0xffffffff }; /* pair.second of a start that waits */

struct pairs_stats {
	uint64_t pairs;
	uint64_t replaced;   /* a start that a later start with its key pushed out */
	uint64_t unstarted;  /* an end that found no start */
	uint64_t mismatched; /* an end that removed a start it makes no pair with (stage or time) */
	uint64_t dropped;    /* starts dropped because of lost records */
	uint64_t evicted;    /* starts dropped because of max_keys or of the timeline's bound */
	uint64_t stored;     /* starts that wait now */
};

/* NULL with errno set; EINVAL without stages. */
struct pairs *pairs_new(const struct pairs_config *config);
void pairs_free(struct pairs *p);
/* Events of class take part as stage (0-based); classes not named are passed over. To be called
 * before the first pairs_feed(). -EINVAL for EVENT_LOST and for a stage that is not there. */
int pairs_add_class(struct pairs *p, uint16_t class, uint32_t stage);

/* The key of events of class is the integer of size bytes (1, 2, 4 or 8) at offset of the payload,
 * which must be that long. -EINVAL for another size. */
int pairs_set_key(struct pairs *p, uint16_t class, uint32_t offset, uint32_t size,
		  uint32_t is_signed);

/* Whoever keeps the events anyway says where: while events are fed, copies[i] is the copy of event
 * i in config.keep, NULL where there is none. NULL: the starts are copied. */
void pairs_use_copies(struct pairs *p, struct event *const *copies);

/* Feeds n events; writes the pairs they complete to out (room for n) and returns how many, or
 * -ENOMEM before any event was looked at. */
int pairs_feed(struct pairs *p, const struct event *events, int n, struct pair *out);

/* Walks the starts that wait, in no order: writes one to *out, with no second event, and returns
 * where to go on; 0 when there is none. at is what the last call returned, 0 begins. Feeding ends
 * such a walk. */
uint32_t pairs_next_stored(const struct pairs *p, uint32_t at, struct pair *out);
/* Time of the oldest stored start, INFINITY without one; looks at all of them. */
double pairs_oldest(const struct pairs *p);
void pairs_read_stats(const struct pairs *p, struct pairs_stats *out);
