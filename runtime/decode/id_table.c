/* SPDX-License-Identifier: GPL-2.0-only */
#include "decode/id_table.h"
#include <errno.h>
#include <stdlib.h>

enum { MAX_OFFSETS = 1 << 16, MIN_ENTRIES = 64 };

void id_table_clear(struct id_table *t)
{
	free(t->entries);
	free(t->by_offset);
	*t = (struct id_table){0};
}

/* Returns the entry of an id, or the free one where it belongs. */
static struct id_entry *find_entry(const struct id_table *t, uint64_t id)
{
	uint32_t at = (uint32_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & t->mask;

	while (t->entries[at].id && t->entries[at].id != id)
		at = (at + 1) & t->mask;
	return &t->entries[at];
}

static int grow(struct id_table *t)
{
	struct id_entry *old = t->entries;
	uint32_t old_size = old ? t->mask + 1 : 0, size = old_size ? old_size * 2 : MIN_ENTRIES;

	t->entries = calloc(size, sizeof(*t->entries));
	if (!t->entries) {
		t->entries = old;
		return -ENOMEM;
	}
	t->mask = size - 1;
	for (uint32_t i = 0; i < old_size; i++)
		if (old[i].id)
			*find_entry(t, old[i].id) = old[i];
	free(old);
	return 0;
}

int id_table_add(struct id_table *t, uint64_t id, uint32_t index)
{
	struct id_entry *e;

	if (!t->entries || t->count * 2 > t->mask) {
		int ret = grow(t);

		if (ret)
			return ret;
	}
	e = find_entry(t, id);
	if (!e->id)
		t->count++;
	e->id = id;
	e->index = index;
	return 0;
}

void id_table_index(struct id_table *t)
{
	uint64_t first = UINT64_MAX, last = 0;
	uint32_t highest = 0;

	if (t->by_offset)
		return;
	for (uint32_t i = 0; t->entries && i <= t->mask; i++) {
		const struct id_entry *e = &t->entries[i];

		if (!e->id)
			continue;
		first = e->id < first ? e->id : first;
		last = e->id > last ? e->id : last;
		highest = e->index > highest ? e->index : highest;
	}
	if (!last || last - first >= MAX_OFFSETS || highest >= ID_TABLE_NONE)
		return;
	t->by_offset = malloc((last - first + 1) * sizeof(*t->by_offset));
	if (!t->by_offset)
		return;
	for (uint64_t i = 0; i <= last - first; i++)
		t->by_offset[i] = ID_TABLE_NONE;
	for (uint32_t i = 0; i <= t->mask; i++)
		if (t->entries[i].id)
			t->by_offset[t->entries[i].id - first] = t->entries[i].index;
	t->first = first;
	t->nr_offsets = last - first + 1;
}

int id_table_hash_find(const struct id_table *t, uint64_t id)
{
	const struct id_entry *e = t->entries ? find_entry(t, id) : NULL;

	return e && e->id ? (int)e->index : -1;
}
