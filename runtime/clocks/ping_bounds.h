/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ping bounds: how far the clock of another machine is ahead of ours, from messages and their
 * answers. A message cannot arrive before it was sent, so each answered ping proves a lower and an
 * upper bound of the offset. The bounds are a proof, no estimate: delays make them wide, but never
 * wrong. They shrink with every ping that is faster than those before it, and widen as the clocks
 * may drift apart. Two clocks that tick at the same rate, as the TSCs of a host and its guest do,
 * do not drift.
 */
#pragma once
#include <stdint.h>

struct ping_bounds {
	double drift;		     /* the rates differ by no more than this; 1e-6 is 1 ppm */
	uint32_t pings;		     /* since the start, or since the other clock was set */
	uint64_t lower, upper;	     /* of the offset: theirs - ours, modulo 2^64 */
	uint64_t lower_at, upper_at; /* when they were measured, on our clock */
};

void ping_bounds_init(struct ping_bounds *bounds, double drift);
/* Adds a ping: sent and answered at our times `sent` and `returned`, received and sent back at
 * their times `received` and `replied`. -ESTALE: it contradicts the bounds, so one of the clocks
 * was set; the bounds start anew with this ping. -EINVAL: it contradicts itself, and was ignored.
 */
int ping_bounds_add(struct ping_bounds *bounds, uint64_t sent, uint64_t received, uint64_t replied,
		    uint64_t returned);
/* Returns the offset in the middle of the bounds at our time `now`, and how far it may be off, both
 * in the clocks' unit. There must have been a ping. */
uint64_t ping_bounds_offset(const struct ping_bounds *bounds, uint64_t now, double *error);
