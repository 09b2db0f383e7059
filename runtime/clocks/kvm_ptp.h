/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KVM's PTP clock: a device by which a guest reads CLOCK_REALTIME of its host, by a hypercall. The
 * kernel reads the guest's clock at exactly the same moment if its clock source is the one that the
 * hypercall tells, else before and after. The device exists if the module ptp_kvm is loaded.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/ptp_clock.h>

struct error;
struct kvm_ptp;

struct kvm_ptp_reading {
	uint64_t mono;	    /* CLOCK_MONOTONIC of this guest, ns */
	uint64_t host_real; /* CLOCK_REALTIME of the host at that moment, ns */
	uint32_t error;	    /* give or take this many ns */
};

enum { KVM_PTP_SAMPLES = 5 };

/* NULL if there is none, with a message if this machine looks like a guest of KVM, else with an
 * empty one. root: a directory that stands for /, in tests; else "". */
struct kvm_ptp *kvm_ptp_open(const char *root, struct error *err);
void kvm_ptp_close(struct kvm_ptp *ptp);
/* Returns false if the clock cannot be read, or the guest's wall clock was set meanwhile. */
bool kvm_ptp_read(struct kvm_ptp *ptp, struct kvm_ptp_reading *out);

/* Picks the tightest of some samples, each of which is the host's time between two of the guest's.
 * ts: one more than twice as many. Returns the host's time, and the guest's give or take error. */
uint64_t kvm_ptp_tightest(const struct ptp_clock_time *ts, uint32_t samples, uint64_t *real,
			  uint32_t *error);
