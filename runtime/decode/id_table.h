/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ids of perf events, and to which attribute each belongs: a hash table. The kernel's ids of
 * one session lie close together, so id_table_index() replaces the hash by an array where it can.
 *
 * For the decoder alone, which looks up an id per sample: hence the open struct.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct id_entry {
	uint64_t id; /* 0: free; the kernel's ids start at 1 */
	uint32_t index;
};

struct id_table {
	struct id_entry *entries;
	uint32_t mask, count;
	uint16_t *by_offset; /* index of id first + i, ID_TABLE_NONE without; NULL: no array */
	uint64_t first, nr_offsets;
};

enum { ID_TABLE_NONE = UINT16_MAX };

/* A zeroed table is empty. */
void id_table_clear(struct id_table *t);
/* The id belongs to index, whatever it belonged to before. Returns 0 or -ENOMEM. */
int id_table_add(struct id_table *t, uint64_t id, uint32_t index);
/* To be called when all ids are in. */
void id_table_index(struct id_table *t);
/* Returns the index of an id; -1: it is unknown. */
int id_table_hash_find(const struct id_table *t, uint64_t id);

static inline int id_table_find(const struct id_table *t, uint64_t id)
{
	if (id - t->first < t->nr_offsets) {
		uint16_t index = t->by_offset[id - t->first];

		return index == ID_TABLE_NONE ? -1 : index;
	}
	return id_table_hash_find(t, id);
}
