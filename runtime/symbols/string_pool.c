/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The strings are in chunks that never move; the hash table points to them. The hash is seeded,
 * because traced programs choose names and must not choose collisions.
 */
#include "symbols/string_pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { CHUNK = 64 << 10, FIRST_SLOTS = 256 };

struct chunk {
	struct chunk *next;
	size_t used, room;
	char text[];
};

struct slot {
	uint32_t hash, len;
	const char *text; /* NULL: free */
};

struct string_pool {
	struct chunk *chunks; /* the first has room left */
	struct slot *slots;
	size_t count, mask; /* slots - 1 */
	uint64_t bytes, max_bytes, seed;
};

struct string_pool *string_pool_new(uint64_t max_bytes)
{
	struct string_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->slots = calloc(FIRST_SLOTS, sizeof(*pool->slots));
	if (!pool->slots) {
		free(pool);
		return NULL;
	}
	pool->mask = FIRST_SLOTS - 1;
	pool->max_bytes = max_bytes;
	if (getrandom(&pool->seed, sizeof(pool->seed), GRND_NONBLOCK) < 0)
		pool->seed = 0; /* early boot: it works all the same */
	return pool;
}

void string_pool_free(struct string_pool *pool)
{
	if (!pool)
		return;
	for (struct chunk *c = pool->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(pool->slots);
	free(pool);
}

uint64_t string_pool_bytes(const struct string_pool *pool)
{
	return pool->bytes + (pool->mask + 1) * sizeof(*pool->slots);
}

static uint32_t hash_text(const struct string_pool *pool, const char *text, size_t len)
{
	uint64_t hash = pool->seed;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
	return (uint32_t)(hash ^ hash >> 32);
}

static struct slot *find_slot(const struct string_pool *pool, uint32_t hash, const char *text,
			      size_t len)
{
	for (size_t i = hash & pool->mask;; i = (i + 1) & pool->mask) {
		struct slot *s = &pool->slots[i];

		if (!s->text ||
		    (s->hash == hash && s->len == len && memcmp(s->text, text, len) == 0))
			return s;
	}
}

static int grow(struct string_pool *pool)
{
	size_t slots = 2 * (pool->mask + 1);
	struct slot *old = pool->slots, *grown = calloc(slots, sizeof(*grown));

	if (!grown)
		return 0;
	pool->slots = grown;
	pool->mask = slots - 1;
	for (size_t i = 0; i < slots / 2; i++) {
		size_t at = old[i].hash & pool->mask;

		if (!old[i].text)
			continue;
		while (grown[at].text)
			at = (at + 1) & pool->mask;
		grown[at] = old[i];
	}
	free(old);
	return 1;
}

static char *store(struct string_pool *pool, const char *text, size_t len)
{
	struct chunk *c = pool->chunks;
	char *copy;

	if (!c || c->room - c->used < len + 1) {
		size_t room = len + 1 > CHUNK ? len + 1 : CHUNK;

		if (pool->bytes + room > pool->max_bytes)
			return NULL;
		c = malloc(sizeof(*c) + room);
		if (!c)
			return NULL;
		*c = (struct chunk){.next = pool->chunks, .room = room};
		pool->chunks = c;
		pool->bytes += room;
	}
	copy = c->text + c->used;
	memcpy(copy, text, len);
	copy[len] = '\0';
	c->used += len + 1;
	return copy;
}

const char *string_pool_add(struct string_pool *pool, const char *text, size_t len)
{
	uint32_t hash = hash_text(pool, text, len);
	struct slot *s;

	if (len >= UINT32_MAX || (pool->count > pool->mask / 2 && !grow(pool)))
		return NULL;
	s = find_slot(pool, hash, text, len);
	if (!s->text) {
		char *copy = store(pool, text, len);

		if (!copy)
			return NULL;
		*s = (struct slot){hash, (uint32_t)len, copy};
		pool->count++;
	}
	return s->text;
}
