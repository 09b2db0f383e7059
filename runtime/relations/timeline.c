/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An arena of chunks that fill from front to back. Chunks are cut from aligned slabs. A slab begins
 * with the heads of its chunks, so the address of an event leads to its chunk, and releasing an
 * event touches neither the event nor its neighbours, which left the caches long ago. A chunk
 * counts the references to all its events and is reused when there are none. One long-lived event
 * holds its whole chunk in memory, which is why chunks are small. Slabs are kept: memory that is
 * touched for the first time costs more than the copies in it.
 */
#include "relations/timeline.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "event.h"

enum {
	CHUNK_BYTES = 64 << 10,
	AHEAD = 512, /* bytes that are prefetched before they are written */
	SLAB_CHUNKS = 32,
	SLAB_BYTES = SLAB_CHUNKS * CHUNK_BYTES,
	SHORT_PAYLOAD = 256,
	PAYLOAD_BYTES = 16 << 20, /* longer payloads are not believed */
	CHAIN_WORDS = 1 << 20	  /* the same for callchains */
};

struct chunk {
	uint64_t refs;	    /* to its events */
	struct chunk *next; /* in the spare list */
};

/* The first chunk begins after the heads, the others at multiples of CHUNK_BYTES. An event larger
 * than a chunk has a slab of its own. */
struct slab {
	struct slab *prev, *next;
	uint64_t bytes; /* of a single event, including this head; 0: the slab has chunks */
	struct chunk chunks[SLAB_CHUNKS];
};

_Static_assert(sizeof(struct slab) % 8 == 0, "what follows the heads must be aligned");
_Static_assert(sizeof(struct event) % 8 == 0, "what follows an event must be aligned");

struct timeline {
	uint8_t *at, *end;     /* the rest of the chunk being filled */
	struct chunk *filling; /* NULL: none */
	struct chunk *spare;   /* last in, first out */
	struct slab slabs;     /* head of a ring of slabs */
	struct slab *cut;      /* chunks are cut from it */
	uint32_t next_cut;     /* index of its next chunk */
	uint64_t bytes, max_bytes;
};

struct timeline *timeline_new(uint64_t max_bytes)
{
	struct timeline *tl = calloc(1, sizeof(*tl));

	if (!tl)
		return NULL;
	tl->slabs.prev = tl->slabs.next = &tl->slabs;
	tl->next_cut = SLAB_CHUNKS;
	tl->max_bytes = max_bytes ? max_bytes : 256 << 20;
	if (tl->max_bytes < CHUNK_BYTES)
		tl->max_bytes = CHUNK_BYTES;
	return tl;
}

void timeline_free(struct timeline *tl)
{
	struct slab *slab, *next;

	if (!tl)
		return;
	for (slab = tl->slabs.next; slab != &tl->slabs; slab = next) {
		next = slab->next;
		free(slab);
	}
	free(tl);
}

static struct slab *slab_of(const void *at)
{
	return (struct slab *)((uintptr_t)at & ~(uintptr_t)(SLAB_BYTES - 1));
}

static struct slab *slab_new(struct timeline *tl, uint64_t bytes)
{
	uint64_t size = bytes ? (bytes + SLAB_BYTES - 1) & ~(uint64_t)(SLAB_BYTES - 1) : SLAB_BYTES;
	struct slab *slab = aligned_alloc(SLAB_BYTES, size);

	if (!slab)
		return NULL;
	memset(slab, 0, sizeof(*slab));
	slab->bytes = bytes;
	slab->prev = tl->slabs.prev;
	slab->next = &tl->slabs;
	slab->prev->next = slab;
	tl->slabs.prev = slab;
	return slab;
}

/* Returns memory for a single event; NULL beyond max_bytes or without memory. */
static struct event *big_event(struct timeline *tl, uint32_t need)
{
	uint64_t bytes = sizeof(struct slab) + need;
	struct slab *slab = bytes <= tl->max_bytes - tl->bytes ? slab_new(tl, bytes) : NULL;

	if (!slab)
		return NULL;
	tl->bytes += bytes;
	slab->chunks[0].refs = 1;
	return (struct event *)(slab + 1);
}

/* Starts a chunk. Returns -1 beyond max_bytes or without memory. */
static int start_chunk(struct timeline *tl)
{
	struct chunk *chunk = tl->spare;
	struct slab *slab;
	bool fresh = false;
	size_t index;

	if (tl->max_bytes - tl->bytes < CHUNK_BYTES)
		return -1;
	if (chunk) {
		tl->spare = chunk->next;
	} else {
		if (tl->next_cut == SLAB_CHUNKS) {
			slab = slab_new(tl, 0);
			if (!slab)
				return -1;
			tl->cut = slab;
			tl->next_cut = 0;
		}
		chunk = &tl->cut->chunks[tl->next_cut++];
		fresh = true;
	}
	tl->bytes += CHUNK_BYTES;
	tl->filling = chunk;
	slab = slab_of(chunk);
	index = chunk - slab->chunks;
	tl->at = index ? (uint8_t *)slab + index * CHUNK_BYTES : (uint8_t *)(slab + 1);
	tl->end = (uint8_t *)slab + (index + 1) * CHUNK_BYTES;
	/* One call instead of a fault per page. Older kernels take the faults. */
	if (fresh)
		madvise((uint8_t *)slab + index * CHUNK_BYTES, CHUNK_BYTES, MADV_POPULATE_WRITE);
	return 0;
}

/* Most payloads are a few words, for which a call of memcpy() costs more than the copy. */
static __always_inline uint8_t *copy_payload(uint8_t *to, const uint8_t *from, uint32_t size)
{
	uint32_t at = 0;

	if (size < 16 || size > SHORT_PAYLOAD)
		return memcpy(to, from, size);
	for (; at + 16 < size; at += 16)
		memcpy(to + at, from + at, 16);
	memcpy(to + size - 16, from + size - 16, 16);
	return to;
}

struct event *timeline_keep(struct timeline *tl, const struct event *ev)
{
	uint32_t raw_bytes, chain_bytes, need;
	struct event *kept;
	uint8_t *payload;

	if (ev->raw_size > PAYLOAD_BYTES || (ev->chain && ev->chain[0] > CHAIN_WORDS))
		return NULL;
	raw_bytes = ev->raw ? (ev->raw_size + 7) & ~7u : 0;
	chain_bytes = ev->chain ? 8 * (1 + (uint32_t)ev->chain[0]) : 0;
	need = sizeof(*kept) + raw_bytes + chain_bytes;
	if (need > CHUNK_BYTES - sizeof(struct slab)) {
		kept = big_event(tl, need);
		if (!kept)
			return NULL;
	} else {
		if (need > (size_t)(tl->end - tl->at) && start_chunk(tl))
			return NULL;
		kept = (struct event *)tl->at;
		for (uint32_t i = 0; i < need; i += 64)
			__builtin_prefetch(tl->at + AHEAD + i, 1);
		tl->at += need;
		tl->filling->refs++;
	}
	*kept = *ev;
	kept->flags = ev->flags | EVENT_KEPT;
	payload = (uint8_t *)(kept + 1);
	if (ev->raw)
		kept->raw = copy_payload(payload, ev->raw, ev->raw_size);
	if (ev->chain)
		kept->chain = memcpy(payload + raw_bytes, ev->chain, chain_bytes);
	return kept;
}

static struct chunk *chunk_of(const struct event *ev)
{
	return &slab_of(ev)->chunks[(uintptr_t)ev % SLAB_BYTES / CHUNK_BYTES];
}

void timeline_retain(struct event *ev)
{
	chunk_of(ev)->refs++;
}

static void end_chunk(struct timeline *tl, struct chunk *chunk)
{
	struct slab *slab = slab_of(chunk);

	if (slab->bytes) {
		tl->bytes -= slab->bytes;
		slab->prev->next = slab->next;
		slab->next->prev = slab->prev;
		free(slab);
		return;
	}
	if (chunk == tl->filling) {
		tl->filling = NULL;
		tl->at = tl->end = NULL;
	}
	tl->bytes -= CHUNK_BYTES;
	chunk->next = tl->spare;
	tl->spare = chunk;
}

void timeline_release(struct timeline *tl, struct event *ev)
{
	struct chunk *chunk = chunk_of(ev);

	if (!--chunk->refs)
		end_chunk(tl, chunk);
}

uint64_t timeline_bytes(const struct timeline *tl)
{
	return tl->bytes;
}
