/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clock axis: the clock on which times are printed, if it is not that of the source: the TSC, the
 * clock of a guest, any of them shifted. Only printed times are converted. Everything that is
 * computed from times, such as latencies, stays in ns of the source's clock.
 *
 * The TSC of this machine is known by pairs of readings. Whenever a time is later than the last
 * pair, another one is read, so live times always lie between two pairs.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct clock_axis;
struct error;
struct source_clock;

struct axis_options {
	const char *vm;	    /* UUID, pid or name: the clock of this guest; NULL: of this host */
	int64_t offset;	    /* added to all times */
	uint32_t tsc;	    /* cycles of the TSC */
	uint32_t monotonic; /* insist on CLOCK_MONOTONIC */
};

/* Parameters of a guest's kvmclock, as in struct pvclock_vcpu_time_info: the clock is system_time
 * (ns) when the guest's TSC is tsc_timestamp. */
struct kvmclock {
	uint64_t tsc_timestamp, system_time;
	uint32_t mul; /* ns per cycle of the shifted TSC, times 2^32 */
	int32_t shift;
};

/* NULL with a message if the source's clock cannot be converted. clock must live as long as the
 * axis. */
struct clock_axis *clock_axis_new(const struct axis_options *options,
				  const struct source_clock *clock, struct error *err);
void clock_axis_free(struct clock_axis *axis);

/* Whether times are in cycles instead of ns. */
int clock_axis_is_cycles(const struct clock_axis *axis);
/* Whether times can be converted: those of a kvmclock need its parameters. */
int clock_axis_ready(const struct clock_axis *axis);
/* Sets or changes the parameters of the guest's kvmclock. */
void clock_axis_set_kvmclock(struct clock_axis *axis, const struct kvmclock *params);

/* Converts a time of the source's clock, in ns. */
int64_t clock_axis_time(struct clock_axis *axis, uint64_t ns);
/* Writes a converted time: "seconds.microseconds", or cycles. Returns its length. */
int clock_axis_text(struct clock_axis *axis, uint64_t ns, char *buf, size_t size);
/* Returns how far the times converted so far may be off, in ns. */
double clock_axis_error(const struct clock_axis *axis);
/* Returns the thread that runs a virtual CPU of the guest; -1: unknown. */
int32_t clock_axis_vcpu_tid(const struct clock_axis *axis, uint32_t vcpu);
/* Takes the line about the latest change, such as a TSC that was set; "" if there is none. */
const char *clock_axis_take_notice(struct clock_axis *axis);
