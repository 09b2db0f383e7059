/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The strings lie in chunks that never move; the hash table has pointers to them. Its hash is
 * seeded: traced programs choose names, but not their collisions.
 */
#include "stacks/string_pool.h"

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
	struct string_pool *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->slots = calloc(FIRST_SLOTS, sizeof(*n->slots));
	if (!n->slots) {
		free(n);
		return NULL;
	}
	n->mask = FIRST_SLOTS - 1;
	n->max_bytes = max_bytes;
	if (getrandom(&n->seed, sizeof(n->seed), GRND_NONBLOCK) < 0)
		n->seed = 0; /* early boot: works all the same */
	return n;
}

void string_pool_free(struct string_pool *n)
{
	if (!n)
		return;
	for (struct chunk *c = n->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(n->slots);
	free(n);
}

uint64_t string_pool_bytes(const struct string_pool *n)
{
	return n->bytes + (n->mask + 1) * sizeof(*n->slots);
}

static uint32_t hash_text(const struct string_pool *n, const char *text, size_t len)
{
	uint64_t hash = n->seed;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
	return (uint32_t)(hash ^ hash >> 32);
}

static struct slot *find_slot(const struct string_pool *n, uint32_t hash, const char *text,
			      size_t len)
{
	for (size_t i = hash & n->mask;; i = (i + 1) & n->mask) {
		struct slot *s = &n->slots[i];

		if (!s->text ||
		    (s->hash == hash && s->len == len && memcmp(s->text, text, len) == 0))
			return s;
	}
}

static int grow(struct string_pool *n)
{
	size_t slots = 2 * (n->mask + 1);
	struct slot *old = n->slots, *grown = calloc(slots, sizeof(*grown));

	if (!grown)
		return 0;
	n->slots = grown;
	n->mask = slots - 1;
	for (size_t i = 0; i < slots / 2; i++) {
		size_t at = old[i].hash & n->mask;

		if (!old[i].text)
			continue;
		while (grown[at].text)
			at = (at + 1) & n->mask;
		grown[at] = old[i];
	}
	free(old);
	return 1;
}

static char *store(struct string_pool *n, const char *text, size_t len)
{
	struct chunk *c = n->chunks;
	char *copy;

	if (!c || c->room - c->used < len + 1) {
		size_t room = len + 1 > CHUNK ? len + 1 : CHUNK;

		if (n->bytes + room > n->max_bytes)
			return NULL;
		c = malloc(sizeof(*c) + room);
		if (!c)
			return NULL;
		*c = (struct chunk){.next = n->chunks, .room = room};
		n->chunks = c;
		n->bytes += room;
	}
	copy = c->text + c->used;
	memcpy(copy, text, len);
	copy[len] = '\0';
	c->used += len + 1;
	return copy;
}

const char *string_pool_add(struct string_pool *n, const char *text, size_t len)
{
	uint32_t hash = hash_text(n, text, len);
	struct slot *s;

	if (len >= UINT32_MAX || (n->count > n->mask / 2 && !grow(n)))
		return NULL;
	s = find_slot(n, hash, text, len);
	if (!s->text) {
		char *copy = store(n, text, len);

		if (!copy)
			return NULL;
		*s = (struct slot){hash, (uint32_t)len, copy};
		n->count++;
	}
	return s->text;
}
