/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/group.h"
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
	RECORD_FINISHED_ROUND = 68,
	RECORD_COMPRESSED = 81,
	LEVEL = 1,		/* higher ones cost more than they save */
	SMALL = GROUP_ROOM / 2, /* groups below this are copied to memory of their own size */
	FULL = sizeof(struct group) + GROUP_ROOM + sizeof(struct perf_event_header),
	POOL_MAX = 16,
	PART_MAX = UINT16_MAX - sizeof(struct perf_event_header)
};

_Static_assert(offsetof(struct group, data) ==
		       offsetof(struct group, front) + sizeof(struct group_front),
	       "the records follow the front");

struct group *group_new(struct group_pool *pool)
{
	struct group *g = pool->first;

	if (g) {
		pool->first = g->next;
		pool->n--;
	} else {
		g = malloc(FULL);
	}
	if (g) {
		memset(g, 0, sizeof(*g));
		g->pool = pool;
		g->memory = FULL;
	}
	return g;
}

void group_free(struct group *g)
{
	struct group_pool *pool = g ? g->pool : NULL;

	if (!g)
		return;
	free(g->packed);
	if (g->memory < FULL || pool->n == POOL_MAX) {
		free(g);
		return;
	}
	g->next = pool->first;
	pool->first = g;
	pool->n++;
}

void group_pool_clear(struct group_pool *pool)
{
	while (pool->first) {
		struct group *next = pool->first->next;

		free(pool->first);
		pool->first = next;
	}
	pool->n = 0;
}

struct group *group_end(struct group *g)
{
	const struct perf_event_header round = {.type = RECORD_FINISHED_ROUND,
						.size = sizeof(round)};
	struct group *small;
	size_t size;

	memcpy(g->data + g->size, &round, sizeof(round));
	g->size += sizeof(round);
	if (g->size > SMALL)
		return g;
	size = sizeof(*g) + g->size;
	small = realloc(g, size);
	if (!small)
		return g;
	small->memory = size;
	return small;
}

/* The front is not compressed, so that a receiver finds its groups without decompressing them. A
 * record has at most 64 KiB, so what does not compress takes two. */
bool group_pack(struct group *g, void *zstd)
{
	size_t front = sizeof(g->front) - g->skip, bound = ZSTD_compressBound(g->size), size;
	uint8_t *at, *packed;

	if (g->packed)
		return true;
	packed = malloc(front + bound + 2 * sizeof(struct perf_event_header));
	if (!packed)
		return false;
	/* The frame is written where it ends up if it needs a single record. */
	at = packed + front;
	size = ZSTD_compressCCtx(zstd, at + sizeof(struct perf_event_header), bound, g->data,
				 g->size, LEVEL);
	if (ZSTD_isError(size)) {
		free(packed);
		return false;
	}
	memcpy(packed, (const uint8_t *)&g->front + g->skip, front);
	while (size) {
		size_t part = size < PART_MAX ? size : PART_MAX;
		struct perf_event_header header = {.type = RECORD_COMPRESSED,
						   .size = sizeof(header) + part};

		if (part < size)
			memmove(at + sizeof(header) + part + sizeof(header),
				at + sizeof(header) + part, size - part);
		memcpy(at, &header, sizeof(header));
		at += header.size;
		size -= part;
	}
	g->packed_size = at - packed;
	g->packed = realloc(packed, g->packed_size);
	if (!g->packed)
		g->packed = packed;
	return true;
}
