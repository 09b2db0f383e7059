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

/* NULL with a message if the source's clock cannot be converted. clock must live as long as the
 * axis. */
struct clock_axis *clock_axis_new(const struct axis_options *options,
				  const struct source_clock *clock, struct error *err);
void clock_axis_free(struct clock_axis *axis);

/* Whether times are in cycles instead of ns. */
int clock_axis_is_cycles(const struct clock_axis *axis);
/* Returns the process of the guest whose clock it is; 0: it is that of this host. */
int32_t clock_axis_vm(const struct clock_axis *axis);
/* Whether times can be converted: those of a guest need its kvmclock, or a pair. Looks whether
 * there is news about it, so it is to be called again and again. */
int clock_axis_ready(struct clock_axis *axis);
/* Adds a pair of the guest's own clock: its clock was ns, give or take error, when its TSC was tsc.
 * The first one replaces the kvmclock. */
void clock_axis_add_guest_pair(struct clock_axis *axis, uint64_t tsc, uint64_t ns, double error);

/* Converts a time of the source's clock, in ns. */
int64_t clock_axis_time(struct clock_axis *axis, uint64_t ns);
/* Writes a converted time: "seconds.microseconds", or cycles. Returns its length. */
int clock_axis_text(struct clock_axis *axis, uint64_t ns, char *buf, size_t size);
/* Returns how far the times converted so far may be off, in ns. */
double clock_axis_error(const struct clock_axis *axis);
/* Takes the line about the latest change, such as a TSC that was set; "" if there is none. */
const char *clock_axis_take_notice(struct clock_axis *axis);
