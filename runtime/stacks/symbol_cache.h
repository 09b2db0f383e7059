/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers to symbols_find() that were given before, also those that there is no symbol. Bounded:
 * when there are too many all are forgotten.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct symbol_cache;
struct symbol;

struct symbol_cache *symbol_cache_new(void);
void symbol_cache_free(struct symbol_cache *a);
void symbol_cache_clear(struct symbol_cache *a);

/* file: not 0. */
bool symbol_cache_find(const struct symbol_cache *a, uint32_t file, uint64_t offset,
		       struct symbol *out);
/* To be called after symbol_cache_find() had none. */
void symbol_cache_add(struct symbol_cache *a, uint32_t file, uint64_t offset,
		      const struct symbol *symbol);
uint64_t symbol_cache_bytes(const struct symbol_cache *a);
