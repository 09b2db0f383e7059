/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/remote_clock.h"
#include <math.h>
#include <string.h>
#include <sys/timex.h>
#include "os/clock.h"
#include "wire/own_records.h"

static const double drift = 100e-6; /* two clocks drift apart by at most this, ns per ns */

void remote_clock_start(struct remote_clock *c, bool is_own_kernel)
{
	memset(c, 0, sizeof(*c));
	c->is_own_kernel = is_own_kernel;
}

/* Returns the bounds that hold now. */
static void bounds_now(const struct remote_clock *c, uint64_t now, double *low, double *high)
{
	double more = ((double)now - (double)c->bound_time) * drift;

	*low = c->low - more;
	*high = c->high + more;
}

/* The wall clock's offset is kept, unless the pings prove that it is wrong. */
static void choose(struct remote_clock *c, double offset, double error)
{
	double low, high;

	if (c->has_bounds) {
		bounds_now(c, clock_monotonic(), &low, &high);
		if (error > (high - low) / 2 || offset < low || offset > high) {
			offset = (low + high) / 2;
			error = (high - low) / 2;
		}
	}
	c->offset = (int64_t)offset + c->to_mono;
	c->error = error;
	c->is_known = true;
}

static double wall_error(void)
{
	struct timex t = {};

	return adjtimex(&t) < 0 ? INFINITY : t.maxerror * 1e3;
}

void remote_clock_pair(struct remote_clock *c, const struct wire_pair *pair)
{
	double sec, nsec, theirs;

	c->to_mono = (int64_t)(pair->mono - pair->clock);
	if (c->is_own_kernel) {
		c->offset = c->to_mono;
		c->error = c->to_mono ? pair->read_error_ns : 0;
		c->is_known = true;
		return;
	}
	clock_wall_zero(&sec, &nsec);
	theirs = pair->real_error_us == UINT32_MAX ? INFINITY : pair->real_error_us * 1e3;
	choose(c, (double)(int64_t)(pair->real - pair->mono - (uint64_t)(int64_t)sec * 1000000000 -
				    (uint64_t)(int64_t)nsec),
	       theirs + wall_error());
}

void remote_clock_ping(struct remote_clock *c, struct wire_ping *ping)
{
	*ping = (struct wire_ping){.seq = c->next_ping};
	memcpy(ping->tag, WIRE_PING, sizeof(ping->tag));
	c->sent[c->next_ping++ % CLOCK_PINGS] = clock_monotonic();
}

/* We sent the ping before it was received, and got the answer after that was sent. */
void remote_clock_pong(struct remote_clock *c, const struct wire_pong *pong)
{
	uint64_t now = clock_monotonic();
	double low, high;

	if (pong->seq >= c->next_ping || c->next_ping - pong->seq > CLOCK_PINGS)
		return;
	low = (double)(int64_t)(c->sent[pong->seq % CLOCK_PINGS] - pong->received_mono);
	high = (double)(int64_t)(now - pong->sent_mono);
	if (c->has_bounds) {
		double old_low, old_high;

		bounds_now(c, now, &old_low, &old_high);
		low = low > old_low ? low : old_low;
		high = high < old_high ? high : old_high;
	}
	if (low > high) { /* a clock was set, or the machine was suspended */
		c->has_bounds = false;
		return;
	}
	c->has_bounds = true;
	c->low = low;
	c->high = high;
	c->bound_time = now;
}

void remote_clock_set(struct remote_clock *c, int64_t offset, double error)
{
	c->offset = offset;
	c->error = error;
	c->is_known = true;
}

bool remote_clock_is_known(const struct remote_clock *c)
{
	return c->is_known;
}

double remote_clock_error_ns(const struct remote_clock *c)
{
	return c->error;
}
