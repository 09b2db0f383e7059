/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wall offset: how far CLOCK_REALTIME of this machine is ahead of its CLOCK_MONOTONIC. NTP slews
 * both alike, so this is a constant until somebody sets the wall clock. Each reading narrows it
 * down, and one that contradicts those before it shows that the clock was set. A wall time is
 * converted only if the clock was not set around it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct clock_pair;

/* Between two times that the wall clock was set. */
struct wall_period {
	uint64_t lower, upper; /* bounds of the offset, ns */
	uint64_t from,
		until; /* the first and the last reading, CLOCK_MONOTONIC; 0: there is none */
};

/* All 0 at first. */
struct wall_offset {
	struct wall_period last, before;
};

void wall_offset_add(struct wall_offset *wall, const struct clock_pair *pair);
/* Converts a wall time to CLOCK_MONOTONIC, give or take error, in ns. False: it is not between two
 * readings that agree. */
bool wall_offset_to_mono(const struct wall_offset *wall, uint64_t real, uint64_t *mono,
			 double *error);
