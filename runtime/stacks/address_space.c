/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unmapping is not reported: a mapping stays until another one replaces it.
 */
#include "stacks/address_space.h"

#include <stdlib.h>
#include <string.h>

struct address_space *address_space_new(int32_t pid, uint64_t *bytes)
{
	struct address_space *space = calloc(1, sizeof(*space));

	if (space) {
		*space = (struct address_space){.refs = 1, .pid = pid, .bytes = bytes};
		*bytes += sizeof(*space);
	}
	return space;
}

static bool make_room(struct address_space *space, uint32_t count)
{
	uint32_t room = space->room ? space->room : 8;
	struct mapping *mappings;

	while (room < count)
		room *= 2;
	if (room == space->room)
		return true;
	mappings = reallocarray(space->mappings, room, sizeof(*mappings));
	if (!mappings)
		return false;
	*space->bytes += (uint64_t)(room - space->room) * sizeof(*mappings);
	space->mappings = mappings;
	space->room = room;
	return true;
}

struct address_space *address_space_copy(const struct address_space *space, int32_t pid)
{
	struct address_space *copy = address_space_new(pid, space->bytes);

	if (copy && !make_room(copy, space->count + 1)) {
		address_space_put(copy);
		return NULL;
	}
	if (copy && space->count)
		memcpy(copy->mappings, space->mappings, space->count * sizeof(*space->mappings));
	if (copy)
		copy->count = space->count;
	return copy;
}

struct address_space *address_space_get(struct address_space *space)
{
	space->refs++;
	return space;
}

void address_space_clear(struct address_space *space)
{
	*space->bytes -= (uint64_t)space->room * sizeof(*space->mappings);
	free(space->mappings);
	space->mappings = NULL;
	space->count = space->room = 0;
}

void address_space_put(struct address_space *space)
{
	if (--space->refs)
		return;
	address_space_clear(space);
	*space->bytes -= sizeof(*space);
	free(space);
}

/* Returns the index of the first mapping that ends after addr. */
static uint32_t first_after(const struct address_space *space, uint64_t addr)
{
	uint32_t low = 0, high = space->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (space->mappings[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Returns whether the addresses that both mappings have mean the same in both. */
static bool agree(const struct mapping *a, const struct mapping *b)
{
	return a->file == b->file && (!a->file || a->start - a->offset == b->start - b->offset);
}

enum space_change address_space_check(const struct address_space *space, const struct mapping *m)
{
	uint32_t i = first_after(space, m->start);

	if (i < space->count && space->mappings[i].start <= m->start &&
	    space->mappings[i].end >= m->end && agree(&space->mappings[i], m))
		return SPACE_SAME;
	for (; i < space->count && space->mappings[i].start < m->end; i++)
		if (!agree(&space->mappings[i], m))
			return SPACE_REPLACES;
	return SPACE_ADDS;
}

bool address_space_insert(struct address_space *space, const struct mapping *m)
{
	uint32_t first = first_after(space, m->start), end = first, kept = 0;
	struct mapping pieces[3];

	while (end < space->count && space->mappings[end].start < m->end)
		end++;
	if (first < end && space->mappings[first].start < m->start) {
		pieces[kept] = space->mappings[first];
		pieces[kept++].end = m->start;
	}
	pieces[kept++] = *m;
	if (first < end && space->mappings[end - 1].end > m->end) {
		pieces[kept] = space->mappings[end - 1];
		pieces[kept].offset += m->end - pieces[kept].start;
		pieces[kept++].start = m->end;
	}
	if (!make_room(space, space->count - (end - first) + kept))
		return false;
	memmove(&space->mappings[first + kept], &space->mappings[end],
		(space->count - end) * sizeof(*space->mappings));
	memcpy(&space->mappings[first], pieces, kept * sizeof(*pieces));
	space->count = space->count - (end - first) + kept;
	return true;
}

const struct mapping *address_space_find(const struct address_space *space, uint64_t addr)
{
	uint32_t i = first_after(space, addr);

	return i < space->count && space->mappings[i].start <= addr ? &space->mappings[i] : NULL;
}
