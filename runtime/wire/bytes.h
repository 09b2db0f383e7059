/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bytes: a buffer that grows as it is written to. Without memory it stops growing, and says so at
 * the end, so that the writers need not check each step.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	uint8_t *data;
	size_t size, room;
	bool failed; /* out of memory: data is incomplete */
};

/* Returns n more bytes, all 0, to be written to; NULL without memory. */
static inline void *bytes_extend(struct bytes *b, size_t n)
{
	if (b->room - b->size < n) {
		size_t room = (b->size + n) * 2;
		uint8_t *grown = b->failed ? NULL : realloc(b->data, room);

		if (!grown) {
			b->failed = true;
			return NULL;
		}
		b->data = grown;
		b->room = room;
	}
	b->size += n;
	return memset(b->data + b->size - n, 0, n);
}

static inline void bytes_add(struct bytes *b, const void *data, size_t n)
{
	void *to = n ? bytes_extend(b, n) : NULL;

	if (to)
		memcpy(to, data, n);
}

static inline void bytes_add_u32(struct bytes *b, uint32_t value)
{
	bytes_add(b, &value, sizeof(value));
}

static inline void bytes_add_u64(struct bytes *b, uint64_t value)
{
	bytes_add(b, &value, sizeof(value));
}

/* Pads the bytes from `from` on with zeros to a multiple of n. */
static inline void bytes_align(struct bytes *b, size_t from, size_t n)
{
	bytes_extend(b, (n - (b->size - from) % n) % n);
}
