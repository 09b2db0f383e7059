/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hash table without deletion; seeded, since offsets are chosen by traced programs.
 */
#include "stacks/symbol_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "stacks/symbols.h"

enum { FIRST_SLOTS = 256, MAX_ANSWERS = 1 << 20 };

struct answer {
	uint64_t offset;
	uint32_t file; /* 0: free */
	struct symbol symbol;
};

struct symbol_cache {
	struct answer *slots;
	size_t count, mask; /* slots - 1 */
	uint64_t seed;
};

struct symbol_cache *symbol_cache_new(void)
{
	struct symbol_cache *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->slots = calloc(FIRST_SLOTS, sizeof(*a->slots));
	if (!a->slots) {
		free(a);
		return NULL;
	}
	a->mask = FIRST_SLOTS - 1;
	if (getrandom(&a->seed, sizeof(a->seed), GRND_NONBLOCK) < 0)
		a->seed = 0; /* early boot: works all the same */
	return a;
}

void symbol_cache_free(struct symbol_cache *a)
{
	if (!a)
		return;
	free(a->slots);
	free(a);
}

void symbol_cache_clear(struct symbol_cache *a)
{
	memset(a->slots, 0, (a->mask + 1) * sizeof(*a->slots));
	a->count = 0;
}

uint64_t symbol_cache_bytes(const struct symbol_cache *a)
{
	return (a->mask + 1) * sizeof(*a->slots);
}

static struct answer *find_slot(const struct symbol_cache *a, uint32_t file, uint64_t offset)
{
	unsigned __int128 product = (unsigned __int128)(offset ^ a->seed) *
				    (0x9e3779b97f4a7c15ULL + 2 * (uint64_t)file);
	size_t at = (uint64_t)product ^ (uint64_t)(product >> 64);

	for (at &= a->mask; a->slots[at].file; at = (at + 1) & a->mask)
		if (a->slots[at].file == file && a->slots[at].offset == offset)
			break;
	return &a->slots[at];
}

bool symbol_cache_find(const struct symbol_cache *a, uint32_t file, uint64_t offset,
		       struct symbol *out)
{
	const struct answer *slot = find_slot(a, file, offset);

	if (slot->file)
		*out = slot->symbol;
	return slot->file;
}

static void make_room(struct symbol_cache *a)
{
	size_t count = a->mask + 1;
	struct answer *old = a->slots, *slots;

	if (a->count <= a->mask / 2)
		return;
	slots = a->count < MAX_ANSWERS ? calloc(2 * count, sizeof(*slots)) : NULL;
	if (!slots) {
		symbol_cache_clear(a);
		return;
	}
	a->slots = slots;
	a->mask = 2 * count - 1;
	for (size_t i = 0; i < count; i++)
		if (old[i].file)
			*find_slot(a, old[i].file, old[i].offset) = old[i];
	free(old);
}

void symbol_cache_add(struct symbol_cache *a, uint32_t file, uint64_t offset,
		      const struct symbol *symbol)
{
	make_room(a);
	*find_slot(a, file, offset) = (struct answer){offset, file, *symbol};
	a->count++;
}
