/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this kernel lets this user open, found by trying: the only answer that is right whatever
 * the kernel's version, configuration, capabilities and policies are.
 */
#pragma once
#include <stdint.h>

enum support_with {
	SUPPORT_SYSTEM =
		1, /* on a CPU and in the kernel too; else only the own thread's user part */
	SUPPORT_CLOCK = 2, /* stamped with CLOCK_MONOTONIC */
	SUPPORT_LOST = 4   /* counts what it loses */
};

/* Opens the event for sampling and closes it again. 0, or the negative errno of the refusal. */
int support_open(uint32_t type, uint64_t config, uint32_t with);
