/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers to symbols_find() that were given before, also those that there is no symbol. Bounded:
 * when there are too many all are forgotten.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct answers;
struct symbol;

struct answers *answers_new(void);
void answers_free(struct answers *a);
void answers_clear(struct answers *a);

/* file: not 0. */
bool answers_find(const struct answers *a, uint32_t file, uint64_t offset, struct symbol *out);
/* To be called after answers_find() had none. */
void answers_add(struct answers *a, uint32_t file, uint64_t offset, const struct symbol *symbol);
uint64_t answers_bytes(const struct answers *a);
