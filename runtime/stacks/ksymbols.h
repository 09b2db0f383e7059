/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code that the kernel got while it ran: BPF programs, trampolines. What came since the start is
 * told by records and is in no list any more once it is gone, but may be in stacks.
 */
#pragma once
#include <stdint.h>

struct ksymbols;
struct string_pool;

/* names must outlive it. NULL without memory. */
struct ksymbols *ksymbols_new(struct string_pool *names);
void ksymbols_free(struct ksymbols *k);

/* A PERF_RECORD_KSYMBOL behind its header. */
void ksymbols_record(struct ksymbols *k, const void *payload, uint32_t size);
/* The code at addr, the newest that was there, and where it starts; NULL: none that is known. */
const char *ksymbols_find(const struct ksymbols *k, uint64_t addr, uint64_t *start);
