/* SPDX-License-Identifier: GPL-2.0-only */
#include "session/pace.h"
#include "os/clock.h"

enum {
	BATCH_TIME = 20000000, /* ns that a batch should take at most */
	BATCH_MIN = 16	       /* events */
};

void pace_hand_out(struct pace *pace)
{
	pace->handed_out = clock_monotonic();
}

int pace_next(struct pace *pace, int n, int most)
{
	uint64_t took = clock_monotonic() - pace->handed_out;

	if (took > BATCH_TIME)
		pace->size = (int)((uint64_t)n * BATCH_TIME / took);
	else if (n >= pace->size && took < BATCH_TIME / 2)
		pace->size *= 2;
	if (pace->size < BATCH_MIN)
		pace->size = BATCH_MIN;
	if (pace->size > most)
		pace->size = most;
	return pace->size;
}
