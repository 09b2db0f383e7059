/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual CPUs: lets the events of a guest appear as those of the threads of this host that run its
 * virtual CPUs, so that they meet what the host traces about these threads.
 */
#pragma once
#include <stdint.h>

struct event;
struct vcpus;
struct vm;

/* Reads on which CPU each thread is pinned now. NULL without memory. */
struct vcpus *vcpus_new(const struct vm *vm);
void vcpus_free(struct vcpus *v);
int32_t vcpus_pid(const struct vcpus *v);
/* Gives n events the process of the machine, the thread of their CPU, and the CPU to which that is
 * pinned. Thread and CPU are -1 if they are unknown, also for CPUs that the machine does not have.
 */
void vcpus_apply(const struct vcpus *v, struct event *ev, int n);
