/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/remote_clock.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/timex.h>
#include "clocks/clock_map.h"
#include "clocks/clock_pair.h"
#include "clocks/guest_clock.h"
#include "os/clock.h"
#include "wire/own_records.h"

static const double drift = 100e-6; /* two machines' clocks drift apart by at most this */

int remote_clock_set_vm(struct remote_clock *c, const struct vm *vm)
{
	struct guest_clock *guest = guest_clock_new(vm);
	struct clock_pair here;

	if (!guest)
		return -ENOMEM;
	guest_clock_free(c->guest);
	c->guest = guest;
	c->has_pair = c->by_guest = false;
	/* The first of the two readings that converting the guest's first pair needs. */
	clock_pair_read(&here);
	guest_clock_host_pair(c->guest, &here);
	return 0;
}

static bool is_same_clock(const struct wire_hello *a, const struct wire_hello *b)
{
	static const uint8_t unknown[sizeof(a->boot_id)];

	return memcmp(a->boot_id, unknown, sizeof(unknown)) != 0 &&
	       !memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id)) && a->clockid == b->clockid &&
	       a->clock_offset == b->clock_offset &&
	       (a->flags & (WIRE_CLOCK_SHIFTED | WIRE_CYCLES)) ==
		       (b->flags & (WIRE_CLOCK_SHIFTED | WIRE_CYCLES));
}

void remote_clock_start(struct remote_clock *c, const struct wire_hello *hello, bool is_own_kernel)
{
	struct guest_clock *guest = c->guest;

	if (is_same_clock(&c->sender, hello))
		return;
	c->guest = NULL;
	remote_clock_clear(c);
	c->guest = guest;
	c->sender = *hello;
	c->is_own_kernel = is_own_kernel;
	ping_bounds_init(&c->pings, drift);
}

void remote_clock_clear(struct remote_clock *c)
{
	clock_map_free(c->map);
	guest_clock_free(c->guest);
	memset(c, 0, sizeof(*c));
	c->is_linear = true;
	c->method = "nothing";
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

/* Returns our CLOCK_MONOTONIC at the pair. */
static uint64_t mono_at(struct remote_clock *c, const struct wire_pair *pair, double *error)
{
	uint64_t mono, offset;
	double by_ping;

	if (c->is_own_kernel) {
		c->method = "the same kernel";
		*error = 0;
		return pair->mono;
	}
	c->method = "the wall clocks";
	mono = by_wall(pair, error);
	if (!c->pings.pings)
		return mono;
	offset = ping_bounds_offset(&c->pings, clock_monotonic(), &by_ping);
	if (by_ping > *error && fabs((double)(int64_t)(pair->mono - offset - mono)) <= by_ping)
		return mono; /* the pings do not know better, and agree */
	c->method = "pings";
	*error = by_ping;
	return pair->mono - offset;
}

/* Lets the guest's clock convert, if it can. now: of the sender's records. */
static void use_guest(struct remote_clock *c, uint64_t now)
{
	c->by_guest = guest_clock_ready(c->guest);
	if (!c->by_guest)
		return;
	c->is_known = true;
	c->is_linear = false;
	c->method = guest_clock_method(c->guest);
	c->error = guest_clock_error(c->guest, now);
}

static void pair_by_guest(struct remote_clock *c, const struct wire_pair *pair, double rate)
{
	struct clock_pair here;

	if (!c->guest || c->is_own_kernel)
		return;
	if (!c->has_pair)
		guest_clock_restart(c->guest, rate);
	c->has_pair = true;
	clock_pair_read(&here);
	guest_clock_host_pair(c->guest, &here);
	guest_clock_pair(c->guest, pair->tsc, pair->clock, pair->read_error_ns);
	use_guest(c, pair->clock);
}

static void pair_by_map(struct remote_clock *c, const struct wire_pair *pair, double rate)
{
	double error;
	uint64_t mono = mono_at(c, pair, &error);

	if (!c->map)
		c->map = clock_map_new(rate);
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

void remote_clock_pair(struct remote_clock *c, const struct wire_pair *pair,
		       const struct wire_hello *hello)
{
	bool is_cycles = hello->flags & WIRE_CYCLES;
	double rate = !is_cycles ? 1 : hello->tsc_khz ? 1e6 / hello->tsc_khz : 0;

	if (!c->map && c->is_own_kernel &&
	    pair->clock - (uint64_t)hello->clock_offset == pair->mono) {
		c->method = "the same kernel";
		remote_clock_set(c, -hello->clock_offset, 0);
		return;
	}
	pair_by_map(c, pair, rate); /* should the guest's clock become unknown */
	pair_by_guest(c, pair, rate);
}

void remote_clock_ptp(struct remote_clock *c, const struct wire_ptp *ptp)
{
	struct guest_ptp reading = {ptp->clock, ptp->mono, ptp->host_real, ptp->error_ns};
	struct clock_pair here;

	if (!c->guest || c->is_own_kernel || !c->has_pair)
		return;
	clock_pair_read(&here);
	guest_clock_ptp(c->guest, &reading, &here, &c->pings);
	use_guest(c, ptp->clock);
}

void remote_clock_ping(struct remote_clock *c, struct wire_ping *ping)
{
	*ping = (struct wire_ping){.seq = c->next_ping, .tsc = clock_tsc()};
	memcpy(ping->tag, WIRE_PING, sizeof(ping->tag));
	c->sent[c->next_ping++ % CLOCK_PINGS] = (struct clock_ping){clock_monotonic(), ping->tsc};
}

void remote_clock_pong(struct remote_clock *c, const struct wire_pong *pong)
{
	const struct clock_ping *ping = &c->sent[pong->seq % CLOCK_PINGS];

	if (pong->seq >= c->next_ping || c->next_ping - pong->seq > CLOCK_PINGS)
		return;
	ping_bounds_add(&c->pings, ping->mono, pong->received_mono, pong->sent_mono,
			clock_monotonic());
	if (c->guest)
		guest_clock_ping(c->guest, ping->tsc, pong->received_tsc, pong->sent_tsc,
				 clock_tsc());
	c->by_guest = c->by_guest && guest_clock_ready(c->guest);
}

void remote_clock_set(struct remote_clock *c, int64_t offset, double error)
{
	c->is_linear = c->is_known = true;
	c->offset = offset;
	c->error = error;
}

uint64_t remote_clock_by_map(const struct remote_clock *c, uint64_t time)
{
	return c->by_guest ? guest_clock_to_host(c->guest, time) : clock_map_to(c->map, time);
}
