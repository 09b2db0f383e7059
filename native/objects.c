/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Open addressing with linear probing, at most half full. A removal moves the following objects
 * forward into the gap, so there are no tombstones: addresses come and go all the time.
 */
#include "objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_SIZE = 64, /* small: few objects stay in the nearest cache */
	DELAY = 16, /* calls between the fetch of an object's memory and its use; a power of two */
	DROP = UINT32_MAX /* kind of a deferred call that removes */
};

struct objects {
	struct object *slots; /* address 0: free */
	uint32_t mask, n, max;
	uint32_t put_off, done; /* deferred calls so far, and how many of them were executed */
	struct objects_stats stats;
	struct object taken;
	struct object later[DELAY];
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

/* The high half of the product depends on all bits; allocated addresses are aligned. */
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

/* Returns 0, 1 if it replaced another object, or -ENOSPC. */
static int put(struct objects *o, const struct object *object)
{
	uint32_t at = find(o, object->space, object->address);
	int replaced = o->slots[at].address != 0;

	if (!replaced) {
		if (o->n >= o->max)
			return -ENOSPC;
		if (o->n * 2ull > o->mask) {
			if (grow(o))
				return -ENOSPC;
			at = find(o, object->space, object->address);
		}
		o->n++;
	}
	o->slots[at] = *object;
	return replaced;
}

static void close_gap(struct objects *o, uint32_t gap)
{
	for (uint32_t at = (gap + 1) & o->mask; o->slots[at].address; at = (at + 1) & o->mask) {
		uint32_t from = home(o, o->slots[at].space, o->slots[at].address);

		/* It may move unless the gap precedes its home slot. */
		if (((at - from) & o->mask) < ((at - gap) & o->mask))
			continue;
		o->slots[gap] = o->slots[at];
		gap = at;
	}
	o->slots[gap].address = 0;
	o->n--;
}

static void make_call(struct objects *o, const struct object *call)
{
	uint32_t at;
	int ret;

	if (call->kind == DROP) {
		at = find(o, call->space, call->address);
		if (o->slots[at].address)
			close_gap(o, at);
		return;
	}
	ret = put(o, call);
	o->stats.replaced += ret == 1;
	o->stats.refused += ret == -ENOSPC;
}

static void make_calls(struct objects *o)
{
	for (; o->done != o->put_off; o->done++)
		make_call(o, &o->later[o->done % DELAY]);
}

static void put_off(struct objects *o, const struct object *call)
{
	const char *slot = (const char *)&o->slots[home(o, call->space, call->address)];

	if (!call->address)
		return;
	__builtin_prefetch(slot);
	__builtin_prefetch(slot + 64); /* an object may cross into the next line */
	if (o->put_off - o->done == DELAY)
		make_call(o, &o->later[o->done++ % DELAY]);
	o->later[o->put_off++ % DELAY] = *call;
}

void objects_put_later(struct objects *o, int32_t space, uint64_t address, int64_t size,
		       double time, int32_t tid, uint32_t stack, uint32_t kind)
{
	put_off(o, &(struct object){address, time, size, space, tid, stack, kind});
}

void objects_drop_later(struct objects *o, int32_t space, uint64_t address)
{
	put_off(o, &(struct object){.address = address, .space = space, .kind = DROP});
}

void objects_read_stats(struct objects *o, struct objects_stats *out)
{
	make_calls(o);
	*out = o->stats;
}

int objects_put(struct objects *o, int32_t space, uint64_t address, int64_t size, double time,
		int32_t tid, uint32_t stack, uint32_t kind)
{
	make_calls(o);
	if (!address)
		return -EINVAL;
	return put(o, &(struct object){address, time, size, space, tid, stack, kind});
}

const struct object *objects_swap(struct objects *o, int32_t space, uint64_t address, int64_t size,
				  double time, int32_t tid, uint32_t stack, uint32_t kind)
{
	const struct object object = {address, time, size, space, tid, stack, kind};
	uint32_t at;

	make_calls(o);
	if (!address)
		return NULL;
	at = find(o, space, address);
	if (!o->slots[at].address) {
		o->stats.refused += put(o, &object) == -ENOSPC;
		return NULL;
	}
	o->taken = o->slots[at];
	o->slots[at] = object;
	o->stats.replaced++;
	return &o->taken;
}

const struct object *objects_take(struct objects *o, int32_t space, uint64_t address)
{
	uint32_t at;

	make_calls(o);
	if (!address)
		return NULL;
	at = find(o, space, address);
	if (!o->slots[at].address)
		return NULL;
	o->taken = o->slots[at];
	close_gap(o, at);
	return &o->taken;
}

uint32_t objects_count(struct objects *o)
{
	make_calls(o);
	return o->n;
}

const struct object *objects_next(struct objects *o, uint32_t *at)
{
	make_calls(o);
	while (*at <= o->mask) {
		const struct object *object = &o->slots[(*at)++];

		if (object->address)
			return object;
	}
	return NULL;
}
