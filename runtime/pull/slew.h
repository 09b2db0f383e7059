/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slew: keeps the times of a sender in order. When more is learned about its clock, the times that
 * follow may turn out to be before some that were delivered. They are then moved to after these,
 * and run at half speed until they are right again. Records that are late for the sender, too, stay
 * late.
 */
#pragma once
#include <stdint.h>

struct slew {
	uint64_t theirs; /* latest time so far, on the sender's clock */
	uint64_t last;	 /* the same on ours */
	uint64_t ahead;	 /* how far times were moved, ns; 0: they are right */
	uint64_t since;	 /* the first of these, before it was moved */
};

/* A stream begins, whose clock may be another one. */
static inline void slew_restart(struct slew *s)
{
	s->theirs = 0;
}

/* All times up to this one are complete. */
static inline void slew_promise(struct slew *s, uint64_t time)
{
	if (time > s->last && time != UINT64_MAX)
		s->last = time;
}

/* Returns a time, which was converted from the sender's clock, in order. 0 stays 0: it is no time.
 */
static inline uint64_t slew_time(struct slew *s, uint64_t theirs, uint64_t time)
{
	uint64_t caught_up, moved = time;

	if (s->ahead && time) {
		caught_up = time > s->since ? (time - s->since) / 2 : 0;
		if (caught_up >= s->ahead)
			s->ahead = 0;
		else
			moved = time + s->ahead - caught_up;
	}
	if (theirs < s->theirs || !time)
		return moved;
	s->theirs = theirs;
	if (moved < s->last) {
		s->ahead = s->last - time;
		s->since = time;
		moved = s->last;
	}
	s->last = moved;
	return moved;
}
