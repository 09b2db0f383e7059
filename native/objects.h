/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that exist, such as allocations that were not freed: a hash table of what is known of
 * each, by its address and the address space that it is in. The table grows by doubling up to a
 * bound.
 */
#pragma once
#include <stdint.h>

struct objects;

struct object {
	uint64_t address; /* not 0 */
	double time;	  /* when it came into being, ns */
	int64_t size;
	int32_t space; /* the process whose address it is; 0: the kernel's */
	int32_t tid;
	uint32_t stack;
	uint32_t kind;
};

/* What the deferred calls came to. */
struct objects_stats {
	uint64_t replaced; /* puts that took the place of an object */
	uint64_t refused;  /* puts without room */
};

/* At most max objects. NULL when out of memory. */
struct objects *objects_new(uint32_t max);
void objects_free(struct objects *o);

/* Returns 0; 1: it took the place of an object that was there; -EINVAL for the address 0, -ENOSPC
 * when there is no room for more. */
int objects_put(struct objects *o, int32_t space, uint64_t address, int64_t size, double time,
		int32_t tid, uint32_t stack, uint32_t kind);
/* Removes an object. Returns it as it was, valid until the next call; NULL: there is none. */
const struct object *objects_take(struct objects *o, int32_t space, uint64_t address);

/* The same for those who put and take at every event: the memory of an object is fetched now and
 * used some calls later; every other function first does what was put off. */
void objects_put_later(struct objects *o, int32_t space, uint64_t address, int64_t size,
		       double time, int32_t tid, uint32_t stack, uint32_t kind);
void objects_drop_later(struct objects *o, int32_t space, uint64_t address);
void objects_read_stats(struct objects *o, struct objects_stats *out);

uint32_t objects_count(struct objects *o);
/* One after the other, in no order: *at starts at 0. NULL after the last. */
const struct object *objects_next(struct objects *o, uint32_t *at);
