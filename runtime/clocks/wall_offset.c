/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/wall_offset.h"
#include "clocks/clock_pair.h"

static bool is_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

void wall_offset_add(struct wall_offset *wall, const struct clock_pair *pair)
{
	struct wall_period *last = &wall->last;
	uint64_t offset = pair->real - pair->mono, error = pair->error + 1ull; /* 1: rounding */
	struct wall_period now = {offset - error, offset + error, pair->mono, pair->mono};

	if (!last->until || is_before(now.upper, last->lower) ||
	    is_before(last->upper, now.lower)) {
		wall->before = *last;
		*last = now;
		return;
	}
	if (is_before(last->lower, now.lower))
		last->lower = now.lower;
	if (is_before(now.upper, last->upper))
		last->upper = now.upper;
	last->until = pair->mono;
}

static bool convert(const struct wall_period *period, uint64_t real, uint64_t *mono, double *error)
{
	uint64_t width = period->upper - period->lower, slack = (width + 1) / 2;

	*mono = real - (period->lower + width / 2);
	*error = slack;
	return period->until && !is_before(*mono + slack, period->from) &&
	       !is_before(period->until, *mono - slack);
}

bool wall_offset_to_mono(const struct wall_offset *wall, uint64_t real, uint64_t *mono,
			 double *error)
{
	uint64_t other;
	double ignored;

	/* If the clock was set back, a wall time may have happened twice. */
	if (convert(&wall->last, real, mono, error))
		return !convert(&wall->before, real, &other, &ignored);
	return convert(&wall->before, real, mono, error);
}
