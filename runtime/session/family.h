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
/* Returns whether all have exited, and none of them can have left a child that is not known. now
 * and read_until are times of the source: all records up to the second have been given to the
 * functions above. A lost EXIT record does not matter: /proc knows. */
bool family_died_out(struct family *f, uint64_t now, uint64_t read_until);
