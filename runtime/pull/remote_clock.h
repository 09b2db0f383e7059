/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Remote clock: converts the times of a stream to CLOCK_MONOTONIC of this machine. The sender's
 * pairs of clocks say what CLOCK_MONOTONIC and the wall time were there. On the same kernel the
 * former is enough. Otherwise the wall clocks connect the two machines, and pings show how far they
 * can be trusted.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct wire_pair;
struct wire_ping;
struct wire_pong;

enum { CLOCK_PINGS = 16 };

struct remote_clock {
	bool is_known, is_own_kernel;
	int64_t offset;	 /* ours minus theirs, ns */
	double error;	 /* ns */
	int64_t to_mono; /* their CLOCK_MONOTONIC minus the clock of their records */
	/* Bounds of our CLOCK_MONOTONIC minus theirs, from pings: valid at bound_time, and less
	 * certain by the clocks' drift later. */
	bool has_bounds;
	int64_t low, high;
	uint64_t bound_time;
	uint64_t next_ping, sent[CLOCK_PINGS]; /* when the latest pings were sent */
};

/* Begins a connection. */
void remote_clock_start(struct remote_clock *c, bool is_own_kernel);
void remote_clock_pair(struct remote_clock *c, const struct wire_pair *pair);
/* Fills a ping to send now. */
void remote_clock_ping(struct remote_clock *c, struct wire_ping *ping);
void remote_clock_pong(struct remote_clock *c, const struct wire_pong *pong);
/* For a stream without pairs: its clock minus ours is known to be this. */
void remote_clock_set(struct remote_clock *c, int64_t offset, double error);

bool remote_clock_is_known(const struct remote_clock *c);
double remote_clock_error_ns(const struct remote_clock *c);

/* 0 stays 0: it marks records without a time. */
static inline uint64_t remote_clock_convert(const struct remote_clock *c, uint64_t time)
{
	return time ? time + (uint64_t)c->offset : 0;
}
