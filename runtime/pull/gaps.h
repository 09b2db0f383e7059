/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gaps: what is missing in a stream, according to the counts in its groups: groups that the sender
 * dropped, and those that were sent while the link was broken. They wait here until the stream is
 * delivered up to them.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct wire_group;

struct gap {
	uint64_t from, to; /* ns */
	uint64_t lost;	   /* 0: unknown */
};

/* What was read from a connection so far. */
struct gaps_read {
	uint64_t samples, lost; /* lost: according to the kernel's records */
	uint32_t unknown;	/* losses of which nobody knows how much was lost */
};

enum { GAPS = 64 };

struct gaps {
	struct gap list[GAPS];
	uint32_t n, next;
	bool has_group, is_broken;
	uint64_t epoch;
	uint64_t seq;		       /* of the last group */
	uint64_t last_time;	       /* ...and its end */
	uint64_t events_after;	       /* events of the epoch up to the end of the last group */
	uint64_t told_after;	       /* the same, even if not all of them have arrived */
	uint64_t events_before;	       /* ...up to its beginning */
	uint64_t lost_before;	       /* records lost in the epoch up to its beginning */
	uint32_t unknown_before;       /* losses of unknown size up to its beginning */
	uint64_t made;		       /* events since the first group began, as the groups say */
	uint64_t missing;	       /* of these, those of groups that did not arrive */
	bool is_unsure;		       /* some may be missing of which nobody knows */
	struct gaps_read before_group; /* what had been read then */
	struct gaps_read since;	       /* and after it, once the link is broken */
};

/* A group begins. first and last are its times on the clock of the gaps. */
void gaps_group(struct gaps *g, const struct wire_group *group, uint64_t epoch, uint64_t first,
		uint64_t last, const struct gaps_read *read);
/* The connection has ended: the last group may not be complete. */
void gaps_broken(struct gaps *g, const struct gaps_read *read);
/* Adds what is known to be missing apart from that. lost: 0, unknown. */
void gaps_add(struct gaps *g, uint64_t from, uint64_t to, uint64_t lost);
/* Returns the next gap that begins up to a time; NULL: none. */
const struct gap *gaps_next(const struct gaps *g, uint64_t until);
/* Removes it. It stays valid until gaps_recycle(). */
void gaps_take(struct gaps *g);
void gaps_recycle(struct gaps *g);
