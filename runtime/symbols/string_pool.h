/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps one copy of each string, at a fixed address. Memory is bounded.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct string_pool;

struct string_pool *string_pool_new(uint64_t max_bytes);
void string_pool_free(struct string_pool *pool);

/* Returns the pool's copy of the text; NULL at the bound or without memory. It lives as long as the
 * pool. */
const char *string_pool_add(struct string_pool *pool, const char *text, size_t len);
uint64_t string_pool_bytes(const struct string_pool *pool);
