/* SPDX-License-Identifier: GPL-2.0-only */
/* Each pair of the guest becomes a pair of its clock and ours, so that converting an event costs
 * one look-up. Pings learn the offset of the TSCs better and better: the difference to the offset
 * of the first pair is added to all times. */
#include "clocks/guest_clock.h"
#include <errno.h>
#include <stdlib.h>
#include "clocks/clock_map.h"
#include "clocks/clock_pair.h"
#include "clocks/ping_bounds.h"
#include "clocks/tsc_scale.h"
#include "clocks/vm.h"

enum {
	MAX_CONTRADICTIONS = 3 /* a TSC is not set so often: it has another rate than ours */
};

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
	if (clock->host && clock->map)
		return clock;
	guest_clock_free(clock);
	return NULL;
}

void guest_clock_restart(struct guest_clock *clock, double rate)
{
	struct clock_map *map = clock_map_new(rate);

	if (map) {
		clock_map_free(clock->map);
		clock->map = map;
	} else {
		clock_map_clear(clock->map);
	}
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
	free(clock);
}

void guest_clock_host_pair(struct guest_clock *clock, const struct clock_pair *pair)
{
	if (!clock_map_add(clock->host, pair->tsc, pair->mono, pair->error))
		clock->last_tsc = pair->tsc;
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

bool guest_clock_ready(const struct guest_clock *clock)
{
	return clock_map_ready(clock->map);
}

uint64_t guest_clock_to_host(struct guest_clock *clock, uint64_t ns)
{
	uint64_t ours = clock_map_to(clock->map, ns);
	int64_t later;

	if (clock->has_scale)
		return ours;
	later = clock->first_offset - tsc_offset(clock);
	return ours + (uint64_t)(int64_t)(later * clock_map_rate(clock->host, clock->last_tsc));
}

double guest_clock_error(struct guest_clock *clock, uint64_t ns)
{
	double error = clock_map_error(clock->map, ns), offset_error = clock->scale.spread;

	if (!clock->has_scale)
		ping_bounds_offset(&clock->pings, clock->last_tsc, &offset_error);
	return error + offset_error * clock_map_rate(clock->host, clock->last_tsc);
}

const char *guest_clock_method(const struct guest_clock *clock)
{
	if (clock->has_scale)
		return "KVM's TSC offset";
	return clock->pings.pings ? "pings" : "nothing";
}
