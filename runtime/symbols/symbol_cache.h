/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Caches the results of symbols_find(), including failures. Bounded: when it is full, it is
 * cleared.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct symbol_cache;
struct symbol;

struct symbol_cache *symbol_cache_new(void);
void symbol_cache_free(struct symbol_cache *c);
void symbol_cache_clear(struct symbol_cache *c);

/* file must not be 0. */
bool symbol_cache_find(const struct symbol_cache *c, uint32_t file, uint64_t offset,
		       struct symbol *out);
/* To be called after symbol_cache_find() found nothing. */
void symbol_cache_add(struct symbol_cache *c, uint32_t file, uint64_t offset,
		      const struct symbol *symbol);
uint64_t symbol_cache_bytes(const struct symbol_cache *c);
