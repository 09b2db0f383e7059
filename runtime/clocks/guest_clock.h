/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guest clock: converts the times of a guest's events to CLOCK_MONOTONIC of this host. The guest
 * tells what its clock and its TSC are at the same moment, and we know our own, so what is missing
 * is how the two TSCs relate: exactly if KVM's debugfs tells, else within the bounds of pings.
 * Better than pings, a guest that has KVM's PTP clock tells what our wall clock is.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct clock_pair;
struct ping_bounds;
struct guest_clock;
struct vm;

/* A reading of the guest: its clocks when ours was host_real, give or take error. */
struct guest_ptp {
	uint64_t ns;	    /* of its events */
	uint64_t mono;	    /* CLOCK_MONOTONIC */
	uint64_t host_real; /* CLOCK_REALTIME, ns */
	double error;	    /* ns */
};

/* vm: the machine, which must live as long as the clock; NULL: unknown, so only pings tell. NULL:
 * out of memory. */
struct guest_clock *guest_clock_new(const struct vm *vm);
/* Forgets what is known of the guest's clock, because another one follows. rate: ns per unit of it,
 * as good as known. */
void guest_clock_restart(struct guest_clock *clock, double rate);
void guest_clock_free(struct guest_clock *clock);

/* Adds a reading of our clocks. To be called before each guest_clock_pair(), after the guest has
 * read its own. */
void guest_clock_host_pair(struct guest_clock *clock, const struct clock_pair *pair);
/* Adds a reading of the guest: the clock of its events was ns, give or take error, when its TSC was
 * tsc. Returns false if a clock was set since the last pair, so that times before and after it do
 * not compare. */
bool guest_clock_pair(struct guest_clock *clock, uint64_t tsc, uint64_t ns, double error);
/* Adds a ping, which was sent and came back at these times of our TSC, see ping_bounds.h. */
void guest_clock_ping(struct guest_clock *clock, uint64_t sent, uint64_t received, uint64_t replied,
		      uint64_t returned);

/* Adds a reading of KVM's PTP clock. here: our clocks now. mono: bounds of the guest's
 * CLOCK_MONOTONIC, which count where the TSCs do not relate. If pings prove that the PTP clock
 * cannot be ours, it is not used: the guest may be that of another machine. */
void guest_clock_ptp(struct guest_clock *clock, const struct guest_ptp *ptp,
		     const struct clock_pair *here, const struct ping_bounds *mono);

/* Whether times can be converted: there is a pair, and the TSCs' relation is known; or a reading of
 * the PTP clock. */
bool guest_clock_ready(const struct guest_clock *clock);
uint64_t guest_clock_to_host(struct guest_clock *clock, uint64_t ns);
/* Returns how far a converted time may be off, in ns. */
double guest_clock_error(struct guest_clock *clock, uint64_t ns);
/* Returns what relates the clocks: "KVM's TSC offset", "KVM's PTP clock", "pings", or "nothing"
 * (so far). */
const char *guest_clock_method(const struct guest_clock *clock);
