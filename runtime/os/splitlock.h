/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locked additions to a number that crosses a cache line: the events that split-lock counts, made
 * on purpose.
 */
#pragma once
#include <stdint.h>

/* Makes n of them. Returns their sum: n, or 0 if the processor is not an x86. */
uint64_t splitlock_make(uint64_t n);
/* Makes them in a thread until the process ends. Returns 0 or a negative errno. */
int splitlock_start(void);
