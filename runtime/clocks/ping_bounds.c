/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/ping_bounds.h"
#include <errno.h>
#include <math.h>

void ping_bounds_init(struct ping_bounds *bounds, double drift)
{
	*bounds = (struct ping_bounds){.drift = drift};
}

/* How far the clocks may have drifted apart between two of our times. */
static int64_t drifted(const struct ping_bounds *bounds, uint64_t from, uint64_t to)
{
	return ceil(fabs((double)(int64_t)(to - from)) * bounds->drift);
}

static void start(struct ping_bounds *b, uint64_t lower, uint64_t lower_at, uint64_t upper,
		  uint64_t upper_at)
{
	b->lower = lower;
	b->lower_at = lower_at;
	b->upper = upper;
	b->upper_at = upper_at;
	b->pings = 1;
}

int ping_bounds_add(struct ping_bounds *b, uint64_t sent, uint64_t received, uint64_t replied,
		    uint64_t returned)
{
	/* They received it after we sent it, and we received it after they sent it back. */
	uint64_t upper = received - sent, lower = replied - returned;
	uint64_t old_lower, old_upper;

	if ((int64_t)(returned - sent) < 0 || (int64_t)(replied - received) < 0 ||
	    (int64_t)(upper - lower) < -drifted(b, sent, returned))
		return -EINVAL;
	if (!b->pings) {
		start(b, lower, returned, upper, sent);
		return 0;
	}
	old_lower = b->lower - drifted(b, b->lower_at, returned);
	old_upper = b->upper + drifted(b, b->upper_at, returned);
	if ((int64_t)(upper - old_lower) < 0 || (int64_t)(old_upper - lower) < 0) {
		start(b, lower, returned, upper, sent);
		return -ESTALE;
	}
	b->pings++;
	if ((int64_t)(lower - old_lower) > 0) {
		b->lower = lower;
		b->lower_at = returned;
	}
	if ((int64_t)(old_upper - upper) > 0) {
		b->upper = upper;
		b->upper_at = sent;
	}
	return 0;
}

uint64_t ping_bounds_offset(const struct ping_bounds *b, uint64_t now, double *error)
{
	uint64_t lower = b->lower - drifted(b, b->lower_at, now);
	uint64_t upper = b->upper + drifted(b, b->upper_at, now);
	uint64_t width = upper - lower;

	*error = (width + 1) / 2;
	return lower + width / 2;
}
