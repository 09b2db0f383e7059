/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Remote clock: converts the times of a stream to CLOCK_MONOTONIC of this machine, from the
 * sender's pairs of clocks. What connects the two machines is, in this order:
 *
 *   the same kernel    CLOCK_MONOTONIC is the same clock
 *   a guest of ours    its TSC is ours, with an offset and ratio that KVM tells, or it reads our
 *                      wall clock by KVM's PTP clock, or the TSC is ours within the
 *                      bounds that pings prove, see clocks/guest_clock.h
 *   pings              prove bounds of the offset of CLOCK_MONOTONIC
 *   the wall clocks    as exact as both machines keep them
 *
 * Of the last two, the more exact one is used.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "clocks/ping_bounds.h"
#include "wire/own_records.h"

struct clock_map;
struct guest_clock;
struct vm;

enum { CLOCK_PINGS = 16 };

struct remote_clock {
	bool is_own_kernel;
	struct wire_hello sender; /* as it said when its clock was met first */
	bool is_linear;		  /* ours = theirs + offset; else the map converts */
	bool is_known;
	int64_t offset;		   /* ns */
	double error;		   /* ns */
	struct clock_map *map;	   /* from the clock of the records to ours; NULL: no pairs yet */
	struct guest_clock *guest; /* of the guest that sends; NULL: it is none, or unknown */
	bool has_pair;		   /* of this connection */
	bool by_guest;		   /* it converts */
	const char *method;	   /* what connects the machines */
	struct ping_bounds pings;
	struct clock_ping {
		uint64_t mono, tsc; /* when it was sent */
	} sent[CLOCK_PINGS];
	uint64_t next_ping;
};

/* Says which guest the sender is, in place of the one before. The machine must live as long as the
 * clock. Returns 0, or -ENOMEM. */
int remote_clock_set_vm(struct remote_clock *c, const struct vm *vm);
/* Begins a connection. What is known of the sender's clock remains known unless it was booted since
 * the last one, or sends times of another clock. */
void remote_clock_start(struct remote_clock *c, const struct wire_hello *hello, bool is_own_kernel);
void remote_clock_clear(struct remote_clock *c);
void remote_clock_pair(struct remote_clock *c, const struct wire_pair *pair,
		       const struct wire_hello *hello);
/* Only of use if the sender is a guest of this machine, see remote_clock_set_vm(). */
void remote_clock_ptp(struct remote_clock *c, const struct wire_ptp *ptp);
/* Fills a ping to send now. */
void remote_clock_ping(struct remote_clock *c, struct wire_ping *ping);
void remote_clock_pong(struct remote_clock *c, const struct wire_pong *pong);
/* For a stream without pairs: our clock minus its clock is known to be this. */
void remote_clock_set(struct remote_clock *c, int64_t offset, double error);
uint64_t remote_clock_by_map(const struct remote_clock *c, uint64_t time);

/* Converts a time. 0 stays 0: it marks records without a time. */
static inline uint64_t remote_clock_convert(const struct remote_clock *c, uint64_t time)
{
	if (!time)
		return 0;
	return c->is_linear ? time + (uint64_t)c->offset : remote_clock_by_map(c, time);
}
