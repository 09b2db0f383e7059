/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/remote_clock.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/timex.h>
#include "clocks/clock_map.h"
#include "clocks/clock_pair.h"
#include "clocks/tsc_scale.h"
#include "clocks/vm.h"
#include "os/clock.h"
#include "wire/own_records.h"

static const double drift = 100e-6; /* two machines' clocks drift apart by at most this */

void remote_clock_start(struct remote_clock *c, bool is_own_kernel)
{
	const struct vm *vm = c->vm;

	remote_clock_clear(c);
	c->vm = vm;
	c->is_own_kernel = is_own_kernel;
	ping_bounds_init(&c->pings, drift);
}

void remote_clock_clear(struct remote_clock *c)
{
	clock_map_free(c->map);
	clock_map_free(c->host);
	memset(c, 0, sizeof(*c));
	c->is_linear = true;
}

static double wall_error(void)
{
	struct timex t = {};

	return adjtimex(&t) < 0 ? INFINITY : t.maxerror * 1e3;
}

/* Returns our CLOCK_MONOTONIC at the pair's wall time. */
static uint64_t by_wall(const struct wire_pair *pair, double *error)
{
	double sec, nsec;

	clock_wall_zero(&sec, &nsec);
	*error = wall_error() +
		 (pair->real_error_us == UINT32_MAX ? INFINITY : pair->real_error_us * 1e3);
	return pair->real - (uint64_t)(int64_t)sec * 1000000000 - (uint64_t)(int64_t)nsec;
}

/* Returns whether the guest's TSC tells our CLOCK_MONOTONIC at the pair. */
static bool by_tsc(struct remote_clock *c, const struct wire_pair *pair, uint64_t *mono,
		   double *error)
{
	struct clock_pair here;
	struct tsc_scale scale;
	uint64_t host;

	if (!c->vm || tsc_scale_read(c->vm, &scale, NULL))
		return false;
	if (!c->host)
		c->host = clock_map_new(0);
	clock_pair_read(&here);
	if (!c->host || (clock_map_add(c->host, here.tsc, here.mono, here.error) == -ERANGE))
		return false;
	if (!clock_map_ready(c->host))
		return false;
	host = tsc_scale_to_host(&scale, pair->tsc);
	*mono = clock_map_to(c->host, host);
	*error = clock_map_error(c->host, host) + scale.spread * clock_map_rate(c->host, host);
	return true;
}

/* Returns our CLOCK_MONOTONIC at the pair. */
static uint64_t mono_at(struct remote_clock *c, const struct wire_pair *pair, double *error)
{
	uint64_t mono, offset;
	double by_ping;

	if (c->is_own_kernel) {
		*error = 0;
		return pair->mono;
	}
	if (by_tsc(c, pair, &mono, error))
		return mono;
	mono = by_wall(pair, error);
	if (!c->pings.pings)
		return mono;
	offset = ping_bounds_offset(&c->pings, clock_monotonic(), &by_ping);
	if (by_ping > *error && fabs((double)(int64_t)(pair->mono - offset - mono)) <= by_ping)
		return mono; /* the pings do not know better, and agree */
	*error = by_ping;
	return pair->mono - offset;
}

void remote_clock_pair(struct remote_clock *c, const struct wire_pair *pair,
		       const struct wire_hello *hello)
{
	bool is_cycles = hello->flags & WIRE_CYCLES;
	double error;
	uint64_t mono = mono_at(c, pair, &error);

	if (!c->map && c->is_own_kernel &&
	    pair->clock - (uint64_t)hello->clock_offset == pair->mono) {
		remote_clock_set(c, -hello->clock_offset, 0);
		return;
	}
	if (!c->map)
		c->map = clock_map_new(!is_cycles ? 1 : hello->tsc_khz ? 1e6 / hello->tsc_khz : 0);
	if (!c->map)
		return;
	if (clock_map_add(c->map, pair->clock, mono, error + pair->read_error_ns) == -ERANGE) {
		clock_map_clear(c->map);
		clock_map_add(c->map, pair->clock, mono, error + pair->read_error_ns);
	}
	if (!clock_map_ready(c->map))
		return;
	c->is_known = true;
	c->is_linear = false;
	c->error = clock_map_error(c->map, pair->clock);
}

void remote_clock_ping(struct remote_clock *c, struct wire_ping *ping)
{
	*ping = (struct wire_ping){.seq = c->next_ping, .tsc = clock_tsc()};
	memcpy(ping->tag, WIRE_PING, sizeof(ping->tag));
	c->sent[c->next_ping++ % CLOCK_PINGS] = clock_monotonic();
}

void remote_clock_pong(struct remote_clock *c, const struct wire_pong *pong)
{
	if (pong->seq >= c->next_ping || c->next_ping - pong->seq > CLOCK_PINGS)
		return;
	ping_bounds_add(&c->pings, c->sent[pong->seq % CLOCK_PINGS], pong->received_mono,
			pong->sent_mono, clock_monotonic());
}

void remote_clock_set(struct remote_clock *c, int64_t offset, double error)
{
	c->is_linear = c->is_known = true;
	c->offset = offset;
	c->error = error;
}

uint64_t remote_clock_by_map(const struct remote_clock *c, uint64_t time)
{
	return clock_map_to(c->map, time);
}
