/* SPDX-License-Identifier: GPL-2.0-only */
/* Each pair of the guest becomes a pair of its clock and ours, so that converting an event costs
 * one look-up. Pings learn the offset of the TSCs better and better: the difference to the offset
 * of the first pair is added to all times. */
#include "clocks/guest_clock.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "clocks/clock_map.h"
#include "clocks/clock_pair.h"
#include "clocks/ping_bounds.h"
#include "clocks/tsc_scale.h"
#include "clocks/vm.h"
#include "clocks/wall_offset.h"

enum {
	MAX_CONTRADICTIONS = 3, /* a TSC is not set so often: it has another rate than ours */
	PTP_PERIOD = 1000000000 /* ns between two readings */
};

static const double unknown_rate =
	100e-6; /* a rate that was not measured is wrong by at most this */

struct guest_clock {
	const struct vm *vm;
	bool has_scale;
	struct tsc_scale scale;
	struct ping_bounds pings;
	uint32_t contradictions; /* of pings */
	struct clock_map *host;	 /* our TSC to our clock */
	struct clock_map *map;	 /* the guest's clock to ours */
	uint64_t first_offset;	 /* of the TSCs, in the pairs of the map */
	uint64_t last_tsc;	 /* of ours */
	struct wall_offset wall; /* of our clocks */
	struct clock_map *ptp;	 /* the guest's clock to ours, by readings of the PTP clock */
	uint32_t ptp_readings;	 /* in the map */
	bool refuses_ptp;
};

struct guest_clock *guest_clock_new(const struct vm *vm)
{
	struct guest_clock *clock = calloc(1, sizeof(*clock));

	if (!clock)
		return NULL;
	clock->vm = vm;
	clock->has_scale = vm && !tsc_scale_read(vm, &clock->scale, NULL);
	ping_bounds_init(&clock->pings, 0); /* one TSC, so no drift */
	clock->host = clock_map_new(0);
	clock->map = clock_map_new(1);
	clock->ptp = clock_map_new(1);
	if (clock->host && clock->map && clock->ptp)
		return clock;
	guest_clock_free(clock);
	return NULL;
}

/* Empties a map, and sets its rate if there is memory for a new one. */
static void restart_map(struct clock_map **map, double rate)
{
	struct clock_map *new = clock_map_new(rate);

	clock_map_clear(*map);
	if (!new)
		return;
	clock_map_free(*map);
	*map = new;
}

void guest_clock_restart(struct guest_clock *clock, double rate)
{
	restart_map(&clock->map, rate);
	restart_map(&clock->ptp, rate);
	clock->ptp_readings = 0;
	clock->refuses_ptp = false;
	ping_bounds_init(&clock->pings, 0);
	clock->contradictions = 0;
	clock->has_scale = clock->vm && !tsc_scale_read(clock->vm, &clock->scale, NULL);
}

void guest_clock_free(struct guest_clock *clock)
{
	if (!clock)
		return;
	clock_map_free(clock->host);
	clock_map_free(clock->map);
	clock_map_free(clock->ptp);
	free(clock);
}

void guest_clock_host_pair(struct guest_clock *clock, const struct clock_pair *pair)
{
	if (!clock_map_add(clock->host, pair->tsc, pair->mono, pair->error))
		clock->last_tsc = pair->tsc;
	wall_offset_add(&clock->wall, pair);
}

/* Looks whether KVM has changed the scale. */
static bool follow_scale(struct guest_clock *clock)
{
	struct tsc_scale now;

	if (!clock->has_scale || tsc_scale_read(clock->vm, &now, NULL))
		return false;
	if (now.offset == clock->scale.offset && now.ratio == clock->scale.ratio)
		return false;
	clock->scale = now;
	return true;
}

static bool is_related(const struct guest_clock *clock)
{
	return clock->has_scale ||
	       (clock->pings.pings && clock->contradictions < MAX_CONTRADICTIONS);
}

static uint64_t tsc_offset(const struct guest_clock *clock)
{
	double error;

	return ping_bounds_offset(&clock->pings, clock->last_tsc, &error);
}

bool guest_clock_pair(struct guest_clock *clock, uint64_t tsc, uint64_t ns, double error)
{
	bool was_set = follow_scale(clock);
	uint64_t ours;

	if (!is_related(clock) || !clock_map_ready(clock->host))
		return true;
	if (was_set)
		clock_map_clear(clock->map);
	if (!clock->has_scale && !clock_map_ready(clock->map))
		clock->first_offset = tsc_offset(clock);
	ours = clock->has_scale ? tsc_scale_to_host(&clock->scale, tsc) : tsc - clock->first_offset;
	error += clock_map_error(clock->host, ours);
	ours = clock_map_to(clock->host, ours);
	if (!clock_map_add(clock->map, ns, ours, error))
		return !was_set;
	clock_map_clear(clock->map);
	clock_map_add(clock->map, ns, ours, error);
	return false;
}

void guest_clock_ping(struct guest_clock *clock, uint64_t sent, uint64_t received, uint64_t replied,
		      uint64_t returned)
{
	/* After a contradiction the guest's TSC has another offset than in the pairs. */
	if (ping_bounds_add(&clock->pings, sent, received, replied, returned) != -ESTALE)
		return;
	clock->contradictions++;
	if (!clock->has_scale)
		clock_map_clear(clock->map);
}

static bool is_by_ptp(const struct guest_clock *clock)
{
	return !clock->has_scale && clock_map_ready(clock->ptp);
}

bool guest_clock_ready(const struct guest_clock *clock)
{
	return is_by_ptp(clock) || clock_map_ready(clock->map);
}

static uint64_t to_host_by_tsc(struct guest_clock *clock, uint64_t ns)
{
	uint64_t ours = clock_map_to(clock->map, ns);
	int64_t later;

	if (clock->has_scale)
		return ours;
	later = clock->first_offset - tsc_offset(clock);
	return ours + (uint64_t)(int64_t)(later * clock_map_rate(clock->host, clock->last_tsc));
}

uint64_t guest_clock_to_host(struct guest_clock *clock, uint64_t ns)
{
	return is_by_ptp(clock) ? clock_map_to(clock->ptp, ns) : to_host_by_tsc(clock, ns);
}

static double error_by_tsc(struct guest_clock *clock, uint64_t ns)
{
	double error = clock_map_error(clock->map, ns), offset_error = clock->scale.spread;

	if (!clock->has_scale)
		ping_bounds_offset(&clock->pings, clock->last_tsc, &offset_error);
	return error + offset_error * clock_map_rate(clock->host, clock->last_tsc);
}

/* At ns, and until the next reading arrives. */
static double error_by_ptp(struct guest_clock *clock, uint64_t ns)
{
	double period = fmin(PTP_PERIOD / clock_map_rate(clock->ptp, ns), INT32_MAX * 1000.0);
	double error = clock_map_error(clock->ptp, ns + (uint64_t)period);

	return clock->ptp_readings > 1 ? error : error + PTP_PERIOD * unknown_rate;
}

double guest_clock_error(struct guest_clock *clock, uint64_t ns)
{
	return is_by_ptp(clock) ? error_by_ptp(clock, ns) : error_by_tsc(clock, ns);
}

/* Whether the bounds of pings allow that ours was mono at the reading, give or take error. */
static bool pings_allow(struct guest_clock *clock, const struct guest_ptp *ptp, uint64_t mono,
			double error, const struct ping_bounds *bounds)
{
	double by_ping;
	uint64_t ping_mono;

	if (is_related(clock) && clock_map_ready(clock->map)) {
		ping_mono = to_host_by_tsc(clock, ptp->ns);
		by_ping = error_by_tsc(clock, ptp->ns);
	} else if (bounds->pings) {
		ping_mono = ptp->mono - ping_bounds_offset(bounds, mono, &by_ping);
	} else {
		return true;
	}
	return fabs((double)(int64_t)(mono - ping_mono)) <= by_ping + error;
}

void guest_clock_ptp(struct guest_clock *clock, const struct guest_ptp *ptp,
		     const struct clock_pair *here, const struct ping_bounds *bounds)
{
	uint64_t mono;
	double error;

	wall_offset_add(&clock->wall, here);
	if (clock->has_scale || !wall_offset_to_mono(&clock->wall, ptp->host_real, &mono, &error))
		return;
	error += ptp->error;
	clock->refuses_ptp = !pings_allow(clock, ptp, mono, error, bounds);
	if (!clock->refuses_ptp && !clock_map_add(clock->ptp, ptp->ns, mono, error)) {
		clock->ptp_readings++;
		return;
	}
	clock_map_clear(clock->ptp);
	clock->ptp_readings = 0;
	if (!clock->refuses_ptp)
		clock->ptp_readings += !clock_map_add(clock->ptp, ptp->ns, mono, error);
}

const char *guest_clock_method(const struct guest_clock *clock)
{
	if (clock->has_scale)
		return "KVM's TSC offset";
	if (is_by_ptp(clock))
		return "KVM's PTP clock";
	if (clock->refuses_ptp)
		return "pings, which rule out KVM's PTP clock";
	return clock->pings.pings ? "pings" : "nothing";
}
