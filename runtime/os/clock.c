/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/clock.h"
#include <time.h>

static int64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

uint64_t clock_monotonic(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

void clock_wall_zero(double *sec, double *nsec)
{
	int64_t best = INT64_MAX;

	/* Takes the tightest of a few readings: an interrupt may come between the clocks. */
	for (int i = 0; i < 8; i++) {
		int64_t from = read_clock(CLOCK_MONOTONIC), wall = read_clock(CLOCK_REALTIME);
		int64_t to = read_clock(CLOCK_MONOTONIC), zero = wall - (from + to) / 2;

		if (to - from >= best)
			continue;
		best = to - from;
		*sec = zero / 1000000000;
		*nsec = zero % 1000000000;
	}
}
