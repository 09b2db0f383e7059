/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hash table without deletion. It is seeded, because traced programs choose offsets.
 */
#include "symbols/symbol_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "symbols/symbols.h"

enum { FIRST_SLOTS = 256, MAX_LOOKUPS = 1 << 20 };

struct lookup {
	uint64_t offset;
	uint32_t file; /* 0: free */
	struct symbol symbol;
};

struct symbol_cache {
	struct lookup *slots;
	size_t count, mask; /* slots - 1 */
	uint64_t seed;
};

struct symbol_cache *symbol_cache_new(void)
{
	struct symbol_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->slots = calloc(FIRST_SLOTS, sizeof(*c->slots));
	if (!c->slots) {
		free(c);
		return NULL;
	}
	c->mask = FIRST_SLOTS - 1;
	if (getrandom(&c->seed, sizeof(c->seed), GRND_NONBLOCK) < 0)
		c->seed = 0; /* early boot: it works all the same */
	return c;
}

void symbol_cache_free(struct symbol_cache *c)
{
	if (!c)
		return;
	free(c->slots);
	free(c);
}

void symbol_cache_clear(struct symbol_cache *c)
{
	memset(c->slots, 0, (c->mask + 1) * sizeof(*c->slots));
	c->count = 0;
}

uint64_t symbol_cache_bytes(const struct symbol_cache *c)
{
	return (c->mask + 1) * sizeof(*c->slots);
}

static struct lookup *find_slot(const struct symbol_cache *c, uint32_t file, uint64_t offset)
{
	unsigned __int128 product = (unsigned __int128)(offset ^ c->seed) *
				    (0x9e3779b97f4a7c15ULL + 2 * (uint64_t)file);
	size_t at = (uint64_t)product ^ (uint64_t)(product >> 64);

	for (at &= c->mask; c->slots[at].file; at = (at + 1) & c->mask)
		if (c->slots[at].file == file && c->slots[at].offset == offset)
			break;
	return &c->slots[at];
}

bool symbol_cache_find(const struct symbol_cache *c, uint32_t file, uint64_t offset,
		       struct symbol *out)
{
	const struct lookup *slot = find_slot(c, file, offset);

	if (slot->file)
		*out = slot->symbol;
	return slot->file;
}

static void make_room(struct symbol_cache *c)
{
	size_t count = c->mask + 1;
	struct lookup *old = c->slots, *slots;

	if (c->count <= c->mask / 2)
		return;
	slots = c->count < MAX_LOOKUPS ? calloc(2 * count, sizeof(*slots)) : NULL;
	if (!slots) {
		symbol_cache_clear(c);
		return;
	}
	c->slots = slots;
	c->mask = 2 * count - 1;
	for (size_t i = 0; i < count; i++)
		if (old[i].file)
			*find_slot(c, old[i].file, old[i].offset) = old[i];
	free(old);
}

void symbol_cache_add(struct symbol_cache *c, uint32_t file, uint64_t offset,
		      const struct symbol *symbol)
{
	make_room(c);
	*find_slot(c, file, offset) = (struct lookup){offset, file, *symbol};
	c->count++;
}
