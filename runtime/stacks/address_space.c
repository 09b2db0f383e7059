/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nobody tells when memory is unmapped: a mapping stays until another takes its place.
 */
#include "stacks/address_space.h"

#include <stdlib.h>
#include <string.h>

struct address_space *address_space_new(int32_t pid, uint64_t *bytes)
{
	struct address_space *l = calloc(1, sizeof(*l));

	if (l) {
		*l = (struct address_space){.refs = 1, .pid = pid, .bytes = bytes};
		*bytes += sizeof(*l);
	}
	return l;
}

static bool make_room(struct address_space *l, uint32_t count)
{
	uint32_t room = l->room ? l->room : 8;
	struct mapping *mappings;

	while (room < count)
		room *= 2;
	if (room == l->room)
		return true;
	mappings = reallocarray(l->mappings, room, sizeof(*mappings));
	if (!mappings)
		return false;
	*l->bytes += (uint64_t)(room - l->room) * sizeof(*mappings);
	l->mappings = mappings;
	l->room = room;
	return true;
}

struct address_space *address_space_copy(const struct address_space *l, int32_t pid)
{
	struct address_space *copy = address_space_new(pid, l->bytes);

	if (copy && !make_room(copy, l->count + 1)) {
		address_space_put(copy);
		return NULL;
	}
	if (copy && l->count)
		memcpy(copy->mappings, l->mappings, l->count * sizeof(*l->mappings));
	if (copy)
		copy->count = l->count;
	return copy;
}

struct address_space *address_space_get(struct address_space *l)
{
	l->refs++;
	return l;
}

void address_space_clear(struct address_space *l)
{
	*l->bytes -= (uint64_t)l->room * sizeof(*l->mappings);
	free(l->mappings);
	l->mappings = NULL;
	l->count = l->room = 0;
}

void address_space_put(struct address_space *l)
{
	if (--l->refs)
		return;
	address_space_clear(l);
	*l->bytes -= sizeof(*l);
	free(l);
}

/* Index of the first mapping that ends behind addr. */
static uint32_t first_behind(const struct address_space *l, uint64_t addr)
{
	uint32_t low = 0, high = l->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (l->mappings[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Whether an address that both have means the same in both. */
static bool agree(const struct mapping *a, const struct mapping *b)
{
	return a->file == b->file && (!a->file || a->start - a->offset == b->start - b->offset);
}

enum space_change address_space_check(const struct address_space *l, const struct mapping *m)
{
	uint32_t i = first_behind(l, m->start);

	if (i < l->count && l->mappings[i].start <= m->start && l->mappings[i].end >= m->end &&
	    agree(&l->mappings[i], m))
		return SPACE_SAME;
	for (; i < l->count && l->mappings[i].start < m->end; i++)
		if (!agree(&l->mappings[i], m))
			return SPACE_REPLACES;
	return SPACE_ADDS;
}

bool address_space_insert(struct address_space *l, const struct mapping *m)
{
	uint32_t first = first_behind(l, m->start), end = first, kept = 0;
	struct mapping pieces[3];

	while (end < l->count && l->mappings[end].start < m->end)
		end++;
	if (first < end && l->mappings[first].start < m->start) {
		pieces[kept] = l->mappings[first];
		pieces[kept++].end = m->start;
	}
	pieces[kept++] = *m;
	if (first < end && l->mappings[end - 1].end > m->end) {
		pieces[kept] = l->mappings[end - 1];
		pieces[kept].offset += m->end - pieces[kept].start;
		pieces[kept++].start = m->end;
	}
	if (!make_room(l, l->count - (end - first) + kept))
		return false;
	memmove(&l->mappings[first + kept], &l->mappings[end],
		(l->count - end) * sizeof(*l->mappings));
	memcpy(&l->mappings[first], pieces, kept * sizeof(*pieces));
	l->count = l->count - (end - first) + kept;
	return true;
}

const struct mapping *address_space_find(const struct address_space *l, uint64_t addr)
{
	uint32_t i = first_behind(l, addr);

	return i < l->count && l->mappings[i].start <= addr ? &l->mappings[i] : NULL;
}
