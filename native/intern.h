/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interns keys to dense small integers: the first key is 0, the next new one 1, and so on. A key
 * is a tuple of up to INTERN_PARTS numbers and byte strings, pushed part by part, then committed.
 * Equal integers are one key, whatever type brought them (5, 5LL, 5ULL, 5.0). A NaN, which has no
 * order and no form in JSON, is the string "nan".
 *
 * Memory is bounded: beyond max_keys keys (or 64 MiB of them, or what can be allocated) every
 * new key gets the id max_keys, the overflow bucket.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct intern;

enum {
	INTERN_PARTS = 4,
	INTERN_BYTES = 4096 /* a longer string is cut there */
};

enum intern_kind {
	INTERN_INT = 1,
	INTERN_UINT = 2,   /* above INT64_MAX */
	INTERN_DOUBLE = 3, /* not an integer, or beyond 64 bits */
	INTERN_STRING = 4
};

struct intern_part {
	enum intern_kind kind;
	uint32_t size;	   /* of bytes */
	const char *bytes; /* INTERN_STRING: valid until the next commit */
	int64_t i;	   /* INTERN_INT; INTERN_UINT: the same 64 bits */
	double d;	   /* INTERN_DOUBLE */
};

/* NULL when out of memory. */
struct intern *intern_new(uint32_t max_keys);
void intern_free(struct intern *t);
/* Forgets all keys; ids start at 0 again. */
void intern_clear(struct intern *t);

/* Append a part to the key that the next commit looks up; a part too many is left out. */
void intern_push_int(struct intern *t, int64_t value);
void intern_push_uint(struct intern *t, uint64_t value);
void intern_push_number(struct intern *t, double value);
void intern_push_bytes(struct intern *t, const char *bytes, size_t size);
/* The id of the key pushed since the last commit (none: the key without parts). */
uint32_t intern_commit(struct intern *t);
/* Drops the parts pushed since the last commit. */
void intern_cancel(struct intern *t);

/* Push and commit of a key of one part. */
uint32_t intern_number(struct intern *t, double value);

uint32_t intern_count(const struct intern *t);
/* How often the overflow bucket was returned since the last clear. */
uint64_t intern_overflow(const struct intern *t);
/* Part number part (from 0) of key id. Returns 1, or 0 if there is none. */
int intern_part(const struct intern *t, uint32_t id, uint32_t part, struct intern_part *out);
