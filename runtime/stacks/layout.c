/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nobody tells when memory is unmapped: a mapping stays until another takes its place.
 */
#include "stacks/layout.h"

#include <stdlib.h>
#include <string.h>

struct layout *layout_new(int32_t pid, uint64_t *bytes)
{
	struct layout *l = calloc(1, sizeof(*l));

	if (l) {
		*l = (struct layout){.refs = 1, .pid = pid, .bytes = bytes};
		*bytes += sizeof(*l);
	}
	return l;
}

static bool make_room(struct layout *l, uint32_t count)
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

struct layout *layout_copy(const struct layout *l, int32_t pid)
{
	struct layout *copy = layout_new(pid, l->bytes);

	if (copy && !make_room(copy, l->count + 1)) {
		layout_put(copy);
		return NULL;
	}
	if (copy && l->count)
		memcpy(copy->mappings, l->mappings, l->count * sizeof(*l->mappings));
	if (copy)
		copy->count = l->count;
	return copy;
}

struct layout *layout_get(struct layout *l)
{
	l->refs++;
	return l;
}

void layout_clear(struct layout *l)
{
	*l->bytes -= (uint64_t)l->room * sizeof(*l->mappings);
	free(l->mappings);
	l->mappings = NULL;
	l->count = l->room = 0;
}

void layout_put(struct layout *l)
{
	if (--l->refs)
		return;
	layout_clear(l);
	*l->bytes -= sizeof(*l);
	free(l);
}

/* Index of the first mapping that ends behind addr. */
static uint32_t first_behind(const struct layout *l, uint64_t addr)
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

enum layout_change layout_check(const struct layout *l, const struct mapping *m)
{
	uint32_t i = first_behind(l, m->start);

	if (i < l->count && l->mappings[i].start <= m->start && l->mappings[i].end >= m->end &&
	    agree(&l->mappings[i], m))
		return LAYOUT_SAME;
	for (; i < l->count && l->mappings[i].start < m->end; i++)
		if (!agree(&l->mappings[i], m))
			return LAYOUT_REPLACES;
	return LAYOUT_ADDS;
}

bool layout_insert(struct layout *l, const struct mapping *m)
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

const struct mapping *layout_find(const struct layout *l, uint64_t addr)
{
	uint32_t i = first_behind(l, addr);

	return i < l->count && l->mappings[i].start <= addr ? &l->mappings[i] : NULL;
}
