/* SPDX-License-Identifier: GPL-2.0-only */
#include "stacks/cursor.h"

#include <dwarf.h>
#include <string.h>

uint64_t cursor_take(struct cursor *c, uint32_t size)
{
	uint64_t value = 0;

	if ((uint64_t)(c->end - c->at) < size) {
		c->is_bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	return value;
}

static int64_t take_signed(struct cursor *c, uint32_t size)
{
	uint32_t shift = 64 - 8 * size;

	return (int64_t)(cursor_take(c, size) << shift) >> shift;
}

static uint64_t take_leb(struct cursor *c, bool is_signed)
{
	uint64_t value = 0, byte;
	uint32_t shift = 0;

	do {
		byte = cursor_take(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= ~0ULL << shift;
	return value;
}

uint64_t cursor_uleb(struct cursor *c)
{
	return take_leb(c, false);
}

int64_t cursor_sleb(struct cursor *c)
{
	return (int64_t)take_leb(c, true);
}

struct cursor cursor_part(struct cursor *c, uint64_t n)
{
	struct cursor part = *c;

	if (n > (uint64_t)(c->end - c->at)) {
		c->is_bad = true;
		n = 0;
	}
	part.end = c->at + n;
	c->at = part.end;
	return part;
}

uint64_t cursor_pointer(struct cursor *c, uint8_t encoding)
{
	uint64_t base =
		(encoding & 0x70) == DW_EH_PE_pcrel ? c->addr + (uint64_t)(c->at - c->section) : 0;

	if (base == 0 && (encoding & 0x70))
		c->is_bad = true;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return base + cursor_take(c, 8);
	case DW_EH_PE_uleb128:
		return base + cursor_uleb(c);
	case DW_EH_PE_udata2:
		return base + cursor_take(c, 2);
	case DW_EH_PE_udata4:
		return base + cursor_take(c, 4);
	case DW_EH_PE_sleb128:
		return base + (uint64_t)cursor_sleb(c);
	case DW_EH_PE_sdata2:
		return base + (uint64_t)take_signed(c, 2);
	case DW_EH_PE_sdata4:
		return base + (uint64_t)take_signed(c, 4);
	default:
		c->is_bad = true;
		return 0;
	}
}
