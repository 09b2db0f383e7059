/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/clock_axis.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "clocks/clock_map.h"
#include "clocks/clock_pair.h"
#include "clocks/kvmclock.h"
#include "clocks/tsc_scale.h"
#include "clocks/vm.h"
#include "error.h"
#include "source.h"

enum {
	SCALE_PERIOD = 1000000000 /* ns between looks at the guest's TSC scale */
};

struct clock_axis {
	struct axis_options options;
	const struct source_clock *clock;
	struct clock_map *map; /* cycles to ns; NULL: not needed, or the source tells */
	uint64_t last_pair;    /* ns */
	struct vm *vm;
	struct tsc_scale scale;
	uint64_t scale_read;		  /* when, ns */
	struct kvmclock_updates *updates; /* of the guest's clock; NULL: not needed */
	struct kvmclock kvmclock;
	bool has_kvmclock;
	struct clock_map *guest; /* the guest's TSC to its clock; NULL: it is the kvmclock */
	double error;		 /* ns */
	struct error notice, taken;
};

/* ---- what the source's clock is ---- */

static const char *clock_name(int32_t id)
{
	static const char *const names[] = {
		[CLOCK_REALTIME] = "CLOCK_REALTIME",
		[CLOCK_MONOTONIC] = "CLOCK_MONOTONIC",
		[CLOCK_BOOTTIME] = "CLOCK_BOOTTIME",
		[CLOCK_TAI] = "CLOCK_TAI",
		[CLOCK_MONOTONIC_RAW] = "CLOCK_MONOTONIC_RAW",
	};

	if (id == SOURCE_CLOCK_LOCAL)
		return "those of the kernel's local clock (perf's default)";
	if (id >= 0 && id < (int32_t)(sizeof(names) / sizeof(*names)) && names[id])
		return names[id];
	return id == SOURCE_CLOCK_MIXED ? "of several clocks" : "of an unknown clock";
}

static int check_source(const struct axis_options *options, const struct source_clock *clock,
			struct error *err)
{
	const char *name = clock_name(clock->id);

	if (options->monotonic && clock->id != CLOCK_MONOTONIC)
		return error_set(err, -EOPNOTSUPP,
				 "--monotonic: the times are %s, and nothing tells how "
				 "CLOCK_MONOTONIC relates to them%s",
				 name, clock->is_live ? "" : "; record with perf record -k mono");
	if (options->vm && !clock->is_live)
		return error_set(err, -EOPNOTSUPP,
				 "--kvmclock: a recording does not contain the guest's clock");
	if (!options->tsc || clock->is_live || clock->has_conversion)
		return 0;
	if (clock->id == SOURCE_CLOCK_LOCAL)
		return error_set(
			err, -EOPNOTSUPP,
			"--tsc: the recording does not tell how the TSC relates to its times "
			"(perf writes this only where the kernel's clock is the TSC)");
	return error_set(err, -EOPNOTSUPP,
			 "--tsc: the times are %s, and nothing tells how the TSC relates to them; "
			 "record without -k",
			 name);
}

/* ---- construction ---- */

static void add_pair(struct clock_axis *axis)
{
	struct clock_pair pair;

	clock_pair_read(&pair);
	if (!clock_map_add(axis->map, pair.tsc, pair.mono, pair.error))
		axis->last_pair = pair.mono;
}

static int start_map(struct clock_axis *axis, struct error *err)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	int code = clock_tsc_check(err);

	if (code)
		return code;
	axis->map = clock_map_new(0);
	if (!axis->map)
		return error_set(err, -ENOMEM, "out of memory");
	add_pair(axis);
	nanosleep(&pause, NULL);
	add_pair(axis);
	return 0;
}

static int find_guest(struct clock_axis *axis, struct error *err)
{
	int code;

	axis->vm = vm_find("", axis->options.vm, err);
	if (!axis->vm)
		return -ENOENT;
	code = tsc_scale_read(axis->vm, &axis->scale, err);
	if (code || axis->options.tsc)
		return code;
	axis->updates = kvmclock_watch(axis->vm, err);
	return axis->updates ? 0 : -EOPNOTSUPP;
}

struct clock_axis *clock_axis_new(const struct axis_options *options,
				  const struct source_clock *clock, struct error *err)
{
	struct clock_axis *axis;
	int code = check_source(options, clock, err);

	if (code)
		return NULL;
	axis = calloc(1, sizeof(*axis));
	if (!axis) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	axis->options = *options;
	axis->clock = clock;
	if (options->vm)
		code = find_guest(axis, err);
	if (!code && clock->is_live && (options->tsc || options->vm))
		code = start_map(axis, err);
	if (code) {
		error_set(err, code, "--%s: %s", options->vm ? "kvmclock" : "tsc", err->text);
		clock_axis_free(axis);
		return NULL;
	}
	axis->options.vm = NULL; /* the caller's */
	return axis;
}

void clock_axis_free(struct clock_axis *axis)
{
	if (!axis)
		return;
	clock_map_free(axis->map);
	clock_map_free(axis->guest);
	kvmclock_unwatch(axis->updates);
	vm_free(axis->vm);
	free(axis);
}

/* ---- conversion ---- */

int clock_axis_is_cycles(const struct clock_axis *axis)
{
	return axis->options.tsc;
}

int32_t clock_axis_vm(const struct clock_axis *axis)
{
	return axis->vm ? axis->vm->pid : 0;
}

int clock_axis_ready(struct clock_axis *axis)
{
	if (!axis->vm || axis->options.tsc || (axis->guest && clock_map_ready(axis->guest)))
		return 1;
	if (kvmclock_take(axis->updates, &axis->kvmclock))
		axis->has_kvmclock = true;
	return axis->has_kvmclock;
}

void clock_axis_add_guest_pair(struct clock_axis *axis, uint64_t tsc, uint64_t ns, double error)
{
	if (!axis->guest)
		axis->guest = clock_map_new(0);
	if (!axis->guest || !clock_map_add(axis->guest, tsc, ns, error))
		return;
	/* The guest's clock was set. */
	clock_map_clear(axis->guest);
	clock_map_add(axis->guest, tsc, ns, error);
}

/* perf's own conversion of the kernel's local clock, backwards: time = zero + (tsc * mult >> shift)
 */
static uint64_t recorded_tsc(const struct source_clock *clock, uint64_t ns)
{
	uint64_t t = ns - clock->zero, quotient = t / clock->mult, rest = t % clock->mult;

	return (quotient << clock->shift) +
	       ((rest << clock->shift) + clock->mult / 2) / clock->mult;
}

static uint64_t host_tsc(struct clock_axis *axis, uint64_t ns)
{
	uint64_t tsc;

	if (!axis->map) {
		axis->error = fmax(axis->error, 1); /* the recording counts ns */
		return recorded_tsc(axis->clock, ns);
	}
	if (ns > axis->last_pair)
		add_pair(axis);
	tsc = clock_map_from(axis->map, ns);
	axis->error = fmax(axis->error, clock_map_error(axis->map, tsc));
	return tsc;
}

static void follow_scale(struct clock_axis *axis, uint64_t ns)
{
	struct tsc_scale now;

	if (ns - axis->scale_read < SCALE_PERIOD)
		return;
	axis->scale_read = ns;
	if (tsc_scale_read(axis->vm, &now, NULL)) /* the machine has ended */
		return;
	if (now.offset != axis->scale.offset || now.ratio != axis->scale.ratio)
		error_set(&axis->notice, 0,
			  "the TSC of %s was set: its offset changed by %" PRId64 " cycles",
			  axis->vm->name, (int64_t)(now.offset - axis->scale.offset));
	axis->scale = now;
}

static uint64_t guest_time(struct clock_axis *axis, uint64_t tsc)
{
	if (!axis->guest || !clock_map_ready(axis->guest))
		return kvmclock_time(&axis->kvmclock, tsc);
	axis->error = fmax(axis->error, clock_map_error(axis->guest, tsc));
	return clock_map_to(axis->guest, tsc);
}

int64_t clock_axis_time(struct clock_axis *axis, uint64_t ns)
{
	uint64_t time = ns;

	if (axis->options.tsc || axis->vm)
		time = host_tsc(axis, ns);
	if (axis->vm) {
		follow_scale(axis, ns);
		time = tsc_scale_to_guest(&axis->scale, time);
		if (!axis->options.tsc)
			time = guest_time(axis, time);
	}
	return time + axis->options.offset;
}

int clock_axis_text(struct clock_axis *axis, uint64_t ns, char *buf, size_t size)
{
	int64_t time = clock_axis_time(axis, ns);
	uint64_t us = ((time < 0 ? -(uint64_t)time : (uint64_t)time) + 500) / 1000;

	if (axis->options.tsc)
		return snprintf(buf, size, "%" PRId64, time);
	return snprintf(buf, size, "%s%" PRIu64 ".%06" PRIu64, time < 0 && us ? "-" : "",
			us / 1000000, us % 1000000);
}

double clock_axis_error(const struct clock_axis *axis)
{
	/* The scale is that of virtual CPU 0. A cycle is less than a ns. */
	return axis->error + axis->scale.spread;
}

const char *clock_axis_take_notice(struct clock_axis *axis)
{
	axis->taken = axis->notice;
	axis->notice.text[0] = 0;
	return axis->taken.text;
}
