/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names: one copy of each string, at an address that stays. Memory is bounded.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct string_pool;

struct string_pool *string_pool_new(uint64_t max_bytes);
void string_pool_free(struct string_pool *n);

/* The copy of the text; NULL when the bound is reached or there is no memory. Lives as long as n.
 */
const char *string_pool_add(struct string_pool *n, const char *text, size_t len);
uint64_t string_pool_bytes(const struct string_pool *n);
