/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interns keys as dense small integers: the first key is 0, the next new one is 1, and so on. A key
 * is a tuple of up to INTERN_PARTS numbers and byte strings. They are pushed one by one, then
 * committed. Equal integers are the same key whatever their type (5, 5LL, 5ULL, 5.0). NaN has no
 * order and no form in JSON, so it becomes the string "nan".
 *
 * Memory is bounded: after max_keys keys, or 64 MiB of them, or when allocation fails, every new
 * key gets the id max_keys, the overflow bucket.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct intern;

enum {
	INTERN_PARTS = 4,
	INTERN_BYTES = 4096 /* longer strings are cut */
};

enum intern_kind {
	INTERN_INT = 1,
	INTERN_UINT = 2,   /* above INT64_MAX */
	INTERN_DOUBLE = 3, /* not an integer, or it exceeds 64 bits */
	INTERN_STRING = 4
};

struct intern_part {
	enum intern_kind kind;
	uint32_t size;	   /* of bytes */
	const char *bytes; /* INTERN_STRING: valid until the next commit */
	int64_t i;	   /* INTERN_INT; INTERN_UINT: the same 64 bits */
	double d;	   /* INTERN_DOUBLE */
};

/* Returns NULL without memory. */
struct intern *intern_new(uint32_t max_keys);
void intern_free(struct intern *t);
/* Forgets all keys; ids start at 0 again. */
void intern_clear(struct intern *t);

/* Append a part to the key that the next commit looks up. Parts beyond INTERN_PARTS are ignored. */
void intern_push_int(struct intern *t, int64_t value);
void intern_push_uint(struct intern *t, uint64_t value);
void intern_push_number(struct intern *t, double value);
void intern_push_bytes(struct intern *t, const char *bytes, size_t size);
/* Returns the id of the key that was pushed since the last commit; without parts it is the empty
 * key. */
uint32_t intern_commit(struct intern *t);
/* Drops the parts pushed since the last commit. */
void intern_cancel(struct intern *t);

/* Pushes and commits a key of one part. */
uint32_t intern_number(struct intern *t, double value);

uint32_t intern_count(const struct intern *t);
/* Returns how often the overflow bucket was used since the last clear. */
uint64_t intern_overflow(const struct intern *t);
/* Counts uses of the overflow bucket for keys that someone else had no room for. */
void intern_add_overflow(struct intern *t, uint64_t uses);
/* Reads a part (from 0) of the key with this id. Returns 1, or 0 if there is none. */
int intern_part(const struct intern *t, uint32_t id, uint32_t part, struct intern_part *out);
