/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Open addressing with linear probing, at most half full. Removal moves the objects behind the gap
 * forward, so that there are no tombstones: addresses come and go all the time.
 */
#include "objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 1024 };

struct objects {
	struct object *slots; /* address 0: free */
	uint32_t mask, n, max;
	struct object taken;
};

struct objects *objects_new(uint32_t max)
{
	struct objects *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->slots = calloc(FIRST_SIZE, sizeof(*o->slots));
	if (!o->slots) {
		free(o);
		return NULL;
	}
	o->mask = FIRST_SIZE - 1;
	o->max = max;
	return o;
}

void objects_free(struct objects *o)
{
	if (!o)
		return;
	free(o->slots);
	free(o);
}

/* The high half of the product depends on all bits; allocators align addresses. */
static inline uint32_t home(const struct objects *o, int32_t space, uint64_t address)
{
	uint64_t h = (address ^ ((uint64_t)(uint32_t)space << 40)) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32) & o->mask;
}

static inline uint32_t find(const struct objects *o, int32_t space, uint64_t address)
{
	uint32_t at = home(o, space, address);

	while (o->slots[at].address &&
	       (o->slots[at].address != address || o->slots[at].space != space))
		at = (at + 1) & o->mask;
	return at;
}

static int grow(struct objects *o)
{
	struct object *old = o->slots;
	uint32_t old_size = o->mask + 1;

	if (old_size > UINT32_MAX / 2)
		return -ENOSPC;
	o->slots = calloc((size_t)old_size * 2, sizeof(*o->slots));
	if (!o->slots) {
		o->slots = old;
		return -ENOSPC;
	}
	o->mask = old_size * 2 - 1;
	for (uint32_t i = 0; i < old_size; i++)
		if (old[i].address)
			o->slots[find(o, old[i].space, old[i].address)] = old[i];
	free(old);
	return 0;
}

int objects_put(struct objects *o, int32_t space, uint64_t address, int64_t size, double time,
		int32_t tid, uint32_t stack, uint32_t kind)
{
	uint32_t at;
	int replaced;

	if (!address)
		return -EINVAL;
	at = find(o, space, address);
	replaced = o->slots[at].address != 0;
	if (!replaced) {
		if (o->n >= o->max)
			return -ENOSPC;
		if (o->n * 2ull > o->mask) {
			if (grow(o))
				return -ENOSPC;
			at = find(o, space, address);
		}
		o->n++;
	}
	o->slots[at] = (struct object){.address = address,
				       .time = time,
				       .size = size,
				       .space = space,
				       .tid = tid,
				       .stack = stack,
				       .kind = kind};
	return replaced;
}

const struct object *objects_take(struct objects *o, int32_t space, uint64_t address)
{
	uint32_t gap, at;

	if (!address)
		return NULL;
	gap = find(o, space, address);
	if (!o->slots[gap].address)
		return NULL;
	o->taken = o->slots[gap];
	for (at = (gap + 1) & o->mask; o->slots[at].address; at = (at + 1) & o->mask) {
		uint32_t from = home(o, o->slots[at].space, o->slots[at].address);

		/* It may move if the gap is not in front of its home. */
		if (((at - from) & o->mask) < ((at - gap) & o->mask))
			continue;
		o->slots[gap] = o->slots[at];
		gap = at;
	}
	o->slots[gap].address = 0;
	o->n--;
	return &o->taken;
}

uint32_t objects_count(const struct objects *o)
{
	return o->n;
}

const struct object *objects_next(const struct objects *o, uint32_t *at)
{
	while (*at <= o->mask) {
		const struct object *object = &o->slots[(*at)++];

		if (object->address)
			return object;
	}
	return NULL;
}
