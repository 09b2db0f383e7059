/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code that was added to the running kernel: BPF programs, trampolines. Records report what was
 * added since the start. Once it is removed no list has it any more, but it may be in stacks.
 */
#pragma once
#include <stdint.h>

struct ksymbols;
struct string_pool;

/* names must outlive it. Returns NULL without memory. */
struct ksymbols *ksymbols_new(struct string_pool *names);
void ksymbols_free(struct ksymbols *k);

/* Reads the body of a PERF_RECORD_KSYMBOL. */
void ksymbols_record(struct ksymbols *k, const void *payload, uint32_t size);
/* Returns the newest code at addr and its start; NULL if none is known. */
const char *ksymbols_find(const struct ksymbols *k, uint64_t addr, uint64_t *start);
