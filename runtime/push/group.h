/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Group: some 64 KiB of records that are sent, or dropped, together: readings of the clocks if
 * they are due, GROUP, the records, and FINISHED_ROUND. All receivers of a stream share its groups.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/own_records.h"

enum { GROUP_ROOM = 1 << 16 /* bytes of records */ };

/* PERF_RECORD_TIME_CONV: the clock pair, for perf. */
struct time_conv {
	struct perf_event_header header;
	uint64_t shift, mult, zero, cycles, mask;
	uint8_t has_zero, has_short, reserved[6];
};

/* What stands before the records. */
struct group_front {
	struct wire_ptp ptp;
	struct wire_pair pair;
	struct time_conv conv;
	struct wire_group group;
};

/* Memory of groups that is used again, because the C library would return it to the kernel. */
struct group_pool {
	struct group *first;
	uint32_t n;
};

struct group {
	struct group_pool *pool;
	struct group *next; /* in the pool */
	uint32_t users;	    /* receivers whose queues contain it */
	uint32_t skip;	    /* bytes of the front that are not sent */
	uint32_t size;	    /* bytes of records so far */
	uint8_t *packed;    /* NULL: not compressed */
	uint32_t packed_size;
	uint32_t memory; /* bytes of it, without the packed ones */
	struct group_front front;
	_Alignas(8) uint8_t data[];
};

/* Returns an empty group with room for GROUP_ROOM bytes; NULL without memory. */
struct group *group_new(struct group_pool *pool);
void group_free(struct group *g);
void group_pool_clear(struct group_pool *pool);
/* Ends the group: from now on it does not change. Returns the group, which may have moved to less
 * memory. */
struct group *group_end(struct group *g);
/* Compresses a group that has ended. Returns false without memory. */
bool group_pack(struct group *g, void *zstd);

/* The events in a group that has ended. */
static inline uint32_t group_events(const struct group *g)
{
	return g->front.group.events;
}

/* The bytes of memory that a receiver keeps by a group in its queue. It stays the same when another
 * receiver has the group compressed. */
static inline size_t group_charge(const struct group *g, bool packed)
{
	return g->memory + (packed ? g->packed_size : 0);
}

/* The bytes to send of a group that has ended. */
static inline const uint8_t *group_bytes(const struct group *g, bool packed, size_t *size)
{
	*size = packed ? g->packed_size : sizeof(g->front) - g->skip + g->size;
	return packed ? g->packed : (const uint8_t *)&g->front + g->skip;
}
