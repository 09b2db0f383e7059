/* SPDX-License-Identifier: GPL-2.0-only */
#include "stacks/resolve.h"
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>
#include "formats/addresses.h"
#include "decode/decoder.h"
#include "decode/records.h"
#include "event.h"
#include "symbols/ksymbols.h"
#include "stacks/maps.h"
#include "symbols/srcline.h"
#include "stacks/stacks.h"
#include "symbols/symbols.h"
#include "stacks/unwind.h"

enum { MAX_STACKS = 1 << 20 };

struct resolve {
	uint32_t parts;
	struct symbols *symbols;
	struct maps *maps;
	struct addresses *kernel, *own_addresses; /* own_addresses: NULL if they are not ours */
	struct ksymbols *ksymbols;
	struct stacks *stacks;
	struct srclines *srclines; /* NULL: not needed yet */
	struct unwind *unwind;	   /* NULL: no stack had to be unwound */
};

struct resolve *resolve_new(const struct buildids *ids, bool own_kernel, struct addresses *kernel,
			    uint32_t parts)
{
	bool live = !ids;
	struct resolve *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->parts = parts;
	r->symbols = symbols_new(live, NAMES_SHORT);
	if (r->symbols && own_kernel)
		symbols_use_own_vdso(r->symbols);
	if (r->symbols)
		symbols_expect(r->symbols, ids);
	if (r->symbols)
		r->maps = maps_new(r->symbols, live);
	r->kernel = kernel;
	if (!kernel) {
		r->kernel = r->own_addresses = addresses_new(ADDRESSES_SYMBOLS, "/proc/kallsyms");
		if (r->kernel)
			addresses_watch(r->kernel, "/proc/modules");
	}
	r->ksymbols = r->symbols ? ksymbols_new(symbols_names(r->symbols)) : NULL;
	if (r->maps && r->kernel && r->ksymbols)
		r->stacks = stacks_new(r->symbols, r->maps, r->kernel, r->ksymbols, MAX_STACKS);
	if (!r->stacks) {
		resolve_free(r);
		return NULL;
	}
	return r;
}

void resolve_free(struct resolve *r)
{
	if (!r)
		return;
	srclines_free(r->srclines);
	unwind_free(r->unwind);
	stacks_free(r->stacks);
	addresses_free(r->own_addresses);
	ksymbols_free(r->ksymbols);
	maps_free(r->maps);
	symbols_free(r->symbols);
	free(r);
}

void resolve_want_data(struct resolve *r)
{
	maps_want_data(r->maps);
}

void resolve_seed(struct resolve *r)
{
	maps_seed_all(r->maps);
}

/* perf reports the kernel as a mapping named "[kernel.kallsyms]_text", which gives the address of
 * that symbol. */
const char *resolve_kernel_start(const struct perf_event_header *rec, const struct event *ev,
				 uint64_t *addr)
{
	static const char kernel[] = "[kernel.kallsyms]_";
	uint32_t at = records_mmap_path(rec->type, ev->raw, ev->raw_size);
	const char *path = (const char *)ev->raw + at;

	if (ev->class != EVENT_MMAP ||
	    (rec->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_KERNEL ||
	    ev->raw_size <= at || !memchr(path, '\0', ev->raw_size - at) ||
	    strncmp(path, kernel, strlen(kernel)) != 0)
		return NULL;
	memcpy(addr, ev->raw + 24, sizeof(*addr));
	return path + strlen(kernel) - 1;
}

void resolve_record(struct resolve *r, const struct perf_event_header *rec, const struct event *ev)
{
	uint64_t addr;
	const char *symbol = resolve_kernel_start(rec, ev, &addr);

	if (symbol)
		addresses_anchor(r->kernel, symbol, addr);
	if (symbol && addr && addr <= UINT32_MAX) /* of a 32-bit machine */
		stacks_start_kernel(r->stacks, addr);
	if (ev->class == EVENT_KSYMBOL)
		ksymbols_record(r->ksymbols, ev->raw, ev->raw_size);
	else
		maps_record(r->maps, rec->type, rec->misc, ev->raw, ev->raw_size, ev->time);
	if (r->unwind && ev->class == EVENT_MMAP)
		unwind_maps_changed(r->unwind, ev);
}

void resolve_unwind(struct resolve *r, const struct decoder *d, const struct perf_event_header *rec,
		    struct event *ev, int n)
{
	const struct perf_event_attr *attr = decoder_attr_of(d, rec);

	if (!attr || !unwind_is_for(attr) || !(r->parts & STACK_USER))
		return;
	if (!r->unwind)
		r->unwind = unwind_new(r->symbols, r->maps);
	if (r->unwind)
		unwind_event(r->unwind, attr, (const uint64_t *)(rec + 1),
			     (rec->size - sizeof(*rec)) / 8, ev);
	for (int i = 1; i < n; i++)
		ev[i].chain = ev->chain;
}

void resolve_begin_batch(struct resolve *r)
{
	if (r->unwind)
		unwind_forget_chains(r->unwind);
}

uint32_t resolve_stack(struct resolve *r, const struct event *ev)
{
	return stacks_intern(r->stacks, ev->pid, ev->time, ev->chain, r->parts);
}

uint32_t resolve_address(struct resolve *r, const struct event *ev, uint64_t address)
{
	uint64_t chain[] = {1, address};

	return stacks_intern(r->stacks, ev->pid, ev->time, chain,
			     STACK_KERNEL | STACK_USER | STACK_ADDRESS);
}

struct stacks *resolve_stacks(struct resolve *r)
{
	return r->stacks;
}

struct srclines *resolve_srclines(struct resolve *r)
{
	if (!r->srclines)
		r->srclines = srclines_new(r->symbols);
	return r->srclines;
}

void resolve_read_stats(const struct resolve *r, struct resolve_stats *out)
{
	struct unwind_stats unwind = {0};
	struct symbols_stats symbols;
	struct stacks_stats stacks;
	struct maps_stats maps;

	stacks_read_stats(r->stacks, &stacks);
	symbols_read_stats(r->symbols, &symbols);
	maps_read_stats(r->maps, &maps);
	if (r->unwind)
		unwind_read_stats(r->unwind, &unwind);
	*out = (struct resolve_stats){
		.stacks = stacks.stacks,
		.stack_bytes = stacks.bytes,
		.with_user = stacks.with_user,
		.short_user = stacks.short_user,
		.overflow = stacks.overflow,
		.files = symbols.files,
		.tables = symbols.tables,
		.symbol_bytes = symbols.bytes + addresses_bytes(r->kernel),
		.processes = maps.processes,
		.map_bytes = maps.bytes,
		.forgotten = maps.forgotten,
		.unwound = unwind.stacks,
		.cut = unwind.cut,
		.lost = unwind.lost,
		.gaps = unwind.gaps,
		.unwind_bytes = unwind.bytes,
		.kernel_hidden = addresses_hidden(r->kernel),
	};
}
