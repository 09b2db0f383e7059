/* SPDX-License-Identifier: GPL-2.0-only */
/* How many events a batch of a live run has. What asks the run to end is seen after a batch, and a
 * script that has not returned by then is interrupted. So a batch is long only if its events take
 * little time. */
#pragma once
#include <stdint.h>

struct pace {
	uint64_t handed_out; /* when the last batch was, ns of CLOCK_MONOTONIC */
	int size;	     /* events of the last batch at the most */
};

/* Notes that the batch is handed out now. */
void pace_hand_out(struct pace *pace);
/* Returns how many events the next batch has at the most, from how long the last one took, which
 * had `n`. */
int pace_next(struct pace *pace, int n, int most);
