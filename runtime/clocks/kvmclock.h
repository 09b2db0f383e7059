/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kvmclock: the clock that KVM gives its guests, a linear function of the guest's TSC. Its
 * parameters are in memory that only KVM and the guest know, but KVM tells them in the tracepoint
 * kvm:kvm_pvclock_update when it changes them: when the guest starts, after migration, often on
 * hosts whose TSC is no clock, else every five minutes.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct error;
struct vm;

/* As in struct pvclock_vcpu_time_info: the clock is system_time (ns) when the guest's TSC is
 * tsc_timestamp. */
struct kvmclock {
	uint64_t tsc_timestamp, system_time;
	uint32_t mul; /* ns per cycle of the shifted TSC, times 2^32 */
	int32_t shift;
};

uint64_t kvmclock_time(const struct kvmclock *clock, uint64_t guest_tsc);

struct kvmclock_updates;

/* Watches the updates of a machine's first virtual CPU. NULL with a message. */
struct kvmclock_updates *kvmclock_watch(const struct vm *vm, struct error *err);
/* Gets the latest update. False: there is none since the last call. */
bool kvmclock_take(struct kvmclock_updates *updates, struct kvmclock *out);
void kvmclock_unwatch(struct kvmclock_updates *updates);
