/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that exist now, such as allocations that were not freed: a hash table by address and
 * address space. The table doubles as it grows, up to a bound.
 */
#pragma once
#include <stdint.h>

struct objects;

struct object {
	uint64_t address; /* not 0 */
	double time;	  /* when it was created, ns */
	int64_t size;
	int32_t space; /* process of the address space; 0: the kernel */
	int32_t tid;
	uint32_t stack;
	uint32_t kind;
};

/* Results of the calls that do not return them. */
struct objects_stats {
	uint64_t replaced; /* puts that replaced an object */
	uint64_t refused;  /* puts that found no room */
};

/* Holds at most max objects. Returns NULL without memory. */
struct objects *objects_new(uint32_t max);
void objects_free(struct objects *o);

/* Returns 0, 1 if it replaced an object, -EINVAL for address 0, or -ENOSPC if the table is full. */
int objects_put(struct objects *o, int32_t space, uint64_t address, int64_t size, double time,
		int32_t tid, uint32_t stack, uint32_t kind);
/* Removes an object. Returns a copy that is valid until the next call; NULL if there is none. */
const struct object *objects_take(struct objects *o, int32_t space, uint64_t address);

/* Puts an object. Returns a copy of the one that it replaced, which is valid until the next call;
 * NULL if there was none. An object that finds no room is only counted. */
const struct object *objects_swap(struct objects *o, int32_t space, uint64_t address, int64_t size,
				  double time, int32_t tid, uint32_t stack, uint32_t kind);

/* The same, deferred, for callers that put and take at every event: the object's memory is
 * prefetched now and used some calls later. All other functions first execute what was deferred. */
void objects_put_later(struct objects *o, int32_t space, uint64_t address, int64_t size,
		       double time, int32_t tid, uint32_t stack, uint32_t kind);
void objects_drop_later(struct objects *o, int32_t space, uint64_t address);
void objects_read_stats(struct objects *o, struct objects_stats *out);

uint32_t objects_count(struct objects *o);
/* Walks all objects in no order: *at starts at 0. Returns NULL after the last one. */
const struct object *objects_next(struct objects *o, uint32_t *at);
