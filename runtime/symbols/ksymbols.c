/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sorted ranges without overlaps: new code replaces what was there. Removal of code is ignored,
 * because stacks are resolved later.
 */
#include "symbols/ksymbols.h"

#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>

#include "symbols/string_pool.h"

enum { MAX_SYMBOLS = 1 << 16 };

struct symbol {
	uint64_t start, end;
	const char *name;
};

struct ksymbols {
	struct string_pool *names;
	struct symbol *symbols;
	uint32_t count, room;
};

struct ksymbols *ksymbols_new(struct string_pool *names)
{
	struct ksymbols *k = calloc(1, sizeof(*k));

	if (k)
		k->names = names;
	return k;
}

void ksymbols_free(struct ksymbols *k)
{
	if (!k)
		return;
	free(k->symbols);
	free(k);
}

/* Returns the index of the first range that ends after addr. */
static uint32_t first_after(const struct ksymbols *k, uint64_t addr)
{
	uint32_t low = 0, high = k->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (k->symbols[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void insert(struct ksymbols *k, const struct symbol *symbol)
{
	uint32_t at = first_after(k, symbol->start), end = at;

	while (end < k->count && k->symbols[end].start < symbol->end)
		end++;
	if (at == end && k->count == k->room) {
		uint32_t room = k->room ? 2 * k->room : 64;
		struct symbol *symbols = room <= MAX_SYMBOLS
						 ? reallocarray(k->symbols, room, sizeof(*symbols))
						 : NULL;

		if (!symbols)
			return;
		k->symbols = symbols;
		k->room = room;
	}
	memmove(&k->symbols[at + 1], &k->symbols[end], (k->count - end) * sizeof(*k->symbols));
	k->symbols[at] = *symbol;
	k->count -= end - at;
	k->count++;
}

void ksymbols_record(struct ksymbols *k, const void *payload, uint32_t size)
{
	struct {
		uint64_t addr;
		uint32_t len;
		uint16_t type, flags;
	} fixed;
	const char *name = (const char *)payload + sizeof(fixed);
	struct symbol symbol;
	size_t len;

	if (size <= sizeof(fixed))
		return;
	memcpy(&fixed, payload, sizeof(fixed));
	len = strnlen(name, size - sizeof(fixed));
	if (fixed.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER || !fixed.len || !len ||
	    fixed.addr > UINT64_MAX - fixed.len)
		return;
	symbol = (struct symbol){fixed.addr, fixed.addr + fixed.len,
				 string_pool_add(k->names, name, len)};
	if (symbol.name)
		insert(k, &symbol);
}

const char *ksymbols_find(const struct ksymbols *k, uint64_t addr, uint64_t *start)
{
	uint32_t i = first_after(k, addr);

	if (i == k->count || k->symbols[i].start > addr)
		return NULL;
	*start = k->symbols[i].start;
	return k->symbols[i].name;
}
