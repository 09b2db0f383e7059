/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's functions, as records for receivers of stacks. */
#pragma once
#include <stdint.h>

struct bytes;

/* Appends the functions in /proc/kallsyms as KSYMS records, with the empty one at the end; and
 * where the kernel lies in memory as the MMAP record that perf expects. words: of the trailer with
 * the sample's id at its end. Nothing but the empty record if this user may not see addresses.
 * Takes about 0.1 s. */
void kernel_symbols_add(struct bytes *out, uint32_t words);
