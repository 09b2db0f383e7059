/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locked additions to a number that lies across two cache lines: what split-lock counts, made on
 * purpose to see that it does.
 */
#pragma once
#include <stdint.h>

/* Makes n of them. Returns what they add up to: n, or 0 where the processor is not an x86. */
uint64_t splitlock_make(uint64_t n);
/* Makes them in a thread of this process until it ends. 0, or a negative errno. */
int splitlock_start(void);
