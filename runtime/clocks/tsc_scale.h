/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TSC scale: what a guest reads from its TSC when the host's TSC has a given value. KVM adds an
 * offset, and where a guest was promised another rate than the host's, lets the CPU multiply first.
 * The relation is exact.
 */
#pragma once
#include <stdint.h>

struct error;
struct vm;

/* guest = offset + (host * ratio >> frac_bits), modulo 2^64 */
struct tsc_scale {
	uint64_t offset;
	uint64_t ratio;	    /* of the rates, as a fixed-point number; 1 << frac_bits: the same */
	uint32_t frac_bits; /* 48 on Intel, 32 on AMD; below 64 */
	uint32_t spread;    /* the virtual CPUs' offsets differ by this many cycles */
};

/* Reads a machine's scale from debugfs, in about 30 us. Call it again to see changes: migration,
 * snapshots and some guests set the TSC anew. */
int tsc_scale_read(const struct vm *vm, struct tsc_scale *out, struct error *err);

uint64_t tsc_scale_to_guest(const struct tsc_scale *scale, uint64_t host);
uint64_t tsc_scale_to_host(const struct tsc_scale *scale, uint64_t guest);
