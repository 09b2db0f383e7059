/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Family: the living threads of a target and of all that it starts, also of daemons, which leave
 * their parent and session. It learns of them from the FORK and EXIT records of all CPUs.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct family;

/* NULL: out of memory. */
struct family *family_new(const int32_t *tids, uint32_t n);
void family_free(struct family *f);
void family_fork(struct family *f, int32_t parent, int32_t tid);
void family_exit(struct family *f, int32_t tid);
/* Returns whether all have exited, as far as records have reported them. A lost EXIT record does
 * not matter: /proc knows. */
bool family_ended(const struct family *f);
