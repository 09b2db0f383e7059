/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's functions, as records for receivers of stacks. */
#pragma once

struct bytes;

/* Appends the functions in /proc/kallsyms as KSYMS records, with the empty one at the end; nothing
 * if this user may not see addresses. Takes about 0.1 s. */
void kernel_symbols_add(struct bytes *out);
