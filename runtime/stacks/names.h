/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names: one copy of each string, at an address that stays. Memory is bounded.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct names;

struct names *names_new(uint64_t max_bytes);
void names_free(struct names *n);

/* The copy of the text; NULL when the bound is reached or there is no memory. Lives as long as n.
 */
const char *names_add(struct names *n, const char *text, size_t len);
uint64_t names_bytes(const struct names *n);
