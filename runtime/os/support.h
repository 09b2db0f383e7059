/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this kernel lets this user open, found out by trying: no other answer is right for every
 * kernel version, configuration, capability and policy.
 */
#pragma once
#include <stdint.h>

enum support_with {
	SUPPORT_SYSTEM = 1, /* on a CPU, kernel included; else only this thread in user mode */
	SUPPORT_CLOCK = 2,  /* timestamps of CLOCK_MONOTONIC */
	SUPPORT_LOST = 4    /* counts of lost records */
};

/* Opens the event for sampling and closes it again. Returns 0 or the negative errno of the
 * refusal. */
int support_open(uint32_t type, uint64_t config, uint32_t with);

/* Sleeps for a millisecond on each CPU in turn, until ms have passed: the timer of each CPU wakes a
 * task up, on an idle CPU in the idle task. */
void support_wake_cpus(uint32_t ms);
