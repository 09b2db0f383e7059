/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables belong to files, whatever processes map them. If there are many or large ones, they are
 * all forgotten at once. Code that a program compiled for itself has no table: it can be unwound
 * only with frame pointers.
 */
#include "stacks/unwind.h"

#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>

#include "stacks/cfi.h"
#include "event.h"
#include "stacks/maps.h"
#include "decode/sample.h"
#include "symbols/symbols.h"

enum {
	MAX_DEPTH = 127, /* of the user half; the kernel's limit is the same */
	MAX_CHAIN = 512,
	MAX_COUNT = 5, /* words of the READ part with an event's own count */
	CHAIN_WORDS = BATCH_MAX * (MAX_COUNT + 2 + MAX_CHAIN + MAX_DEPTH), /* per batch, at most */
	MAX_FILES = 128,
	MAX_BYTES = 256 << 20,
	REGISTERS_32 = 1, /* PERF_SAMPLE_REGS_ABI_32 */
	REGISTERS_64 = 2, /* PERF_SAMPLE_REGS_ABI_64 */
};

#define USER_END (1ULL << 47)

struct file {
	bool tried;
	struct cfi *cfi; /* NULL: not readable */
};

struct unwind {
	struct symbols *symbols;
	struct maps *maps;
	struct file *files; /* by number */
	uint32_t room, nr_open;
	uint64_t *words; /* chains of this batch */
	uint32_t used_words;
	struct unwind_stats stats;
};

/* The copy of a stack. */
struct dump {
	struct cfi_memory memory; /* first: passed to the readers */
	const uint8_t *bytes;
	uint64_t start, size;
	bool was_short; /* something beyond its end was read */
};

struct unwind *unwind_new(struct symbols *symbols, struct maps *maps)
{
	struct unwind *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->symbols = symbols;
	u->maps = maps;
	u->words = malloc(CHAIN_WORDS * sizeof(*u->words));
	if (!u->words) {
		free(u);
		return NULL;
	}
	return u;
}

static void forget_files(struct unwind *u)
{
	for (uint32_t i = 0; i < u->room; i++)
		cfi_free(u->files[i].cfi);
	memset(u->files, 0, u->room * sizeof(*u->files));
	u->nr_open = 0;
	u->stats.bytes = 0;
}

void unwind_free(struct unwind *u)
{
	if (!u)
		return;
	if (u->files)
		forget_files(u);
	free(u->files);
	free(u->words);
	free(u);
}

/* perf's numbers of the registers, in DWARF's order. */
static const uint8_t perf_numbers[CFI_REGISTERS] = {0,	3,  2,	1,  4,	5,  6,	7, 16,
						    17, 18, 19, 20, 21, 22, 23, 8};

uint64_t unwind_registers(void)
{
	uint64_t mask = 0;

#ifdef __x86_64__
	for (int i = 0; i < CFI_REGISTERS; i++)
		mask |= 1ull << perf_numbers[i];
#endif
	return mask;
}

bool unwind_is_for(const struct perf_event_attr *attr)
{
	const uint64_t type =
		PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

	return (attr->sample_type & type) == type;
}

static bool read_dump(const struct cfi_memory *m, uint64_t addr, uint64_t *word)
{
	struct dump *d = (struct dump *)m;

	if (addr < d->start || addr - d->start >= d->size || d->size - (addr - d->start) < 8) {
		d->was_short |= addr >= d->start && addr - d->start < 16 << 20;
		return false;
	}
	memcpy(word, d->bytes + (addr - d->start), sizeof(*word));
	return true;
}

/* Returns false if there are none, as for a kernel thread, or if they are not those of a 64-bit
 * program. */
static bool read_registers(struct unwind *u, const struct perf_event_attr *attr,
			   const uint64_t *words, uint32_t nr, struct cfi_frame *frame)
{
	uint64_t mask = attr->sample_regs_user;
	uint32_t size;
	const uint64_t *part = sample_part(attr, words, nr, PERF_SAMPLE_REGS_USER, &size);

	if (part && part[0] == REGISTERS_32) {
		u->stats.stacks++;
		u->stats.lost++;
	}
	if (!part || part[0] != REGISTERS_64)
		return false;
	for (int i = 0; i < CFI_REGISTERS; i++) {
		uint64_t bit = 1ull << perf_numbers[i];

		if (!(mask & bit))
			continue;
		frame->reg[i] = part[1 + __builtin_popcountll(mask & (bit - 1))];
		frame->known |= 1u << i;
	}
	return frame->known >> CFI_PC & 1 && frame->known >> CFI_SP & 1;
}

/* The part has the size asked for, the bytes, and how many of them were copied; or 0. */
static void read_copy(const struct perf_event_attr *attr, const uint64_t *words, uint32_t nr,
		      struct dump *dump)
{
	uint32_t size;
	const uint64_t *part = sample_part(attr, words, nr, PERF_SAMPLE_STACK_USER, &size);
	uint64_t room = part && size > 2 ? (size - 2) * sizeof(*part) : 0;

	dump->bytes = room ? (const uint8_t *)(part + 1) : NULL;
	dump->size = room && part[size - 1] < room ? part[size - 1] : room;
}

static struct cfi *get_cfi(struct unwind *u, uint32_t number)
{
	struct file *f;

	if (number >= u->room) {
		uint32_t room = number < 256 ? 512 : 2 * number;
		struct file *files = reallocarray(u->files, room, sizeof(*files));

		if (!files)
			return NULL;
		memset(files + u->room, 0, (room - u->room) * sizeof(*files));
		u->files = files;
		u->room = room;
	}
	f = &u->files[number];
	if (f->tried)
		return f->cfi;
	if (u->nr_open >= MAX_FILES || u->stats.bytes > MAX_BYTES)
		forget_files(u);
	f->tried = true;
	f->cfi = cfi_open(symbols_dup(u->symbols, number));
	if (f->cfi) {
		u->nr_open++;
		u->stats.bytes += cfi_bytes(f->cfi);
	}
	return f->cfi;
}

/* The frame pointer points to the caller's frame pointer, which is followed by the return
 * address. */
static enum cfi_result follow_pointer(struct cfi_frame *f, const struct dump *d)
{
	uint64_t pointer = f->reg[CFI_BP], old_sp = f->reg[CFI_SP], saved, pc;

	/* the ABI's mark of the first frame of a program */
	if (f->known >> CFI_BP & 1 && !pointer)
		return CFI_OUTERMOST;
	if (!(f->known >> CFI_BP & 1) || pointer < old_sp)
		return CFI_UNKNOWN;
	if (!d->memory.read(&d->memory, pointer, &saved) ||
	    !d->memory.read(&d->memory, pointer + 8, &pc))
		return CFI_UNREADABLE;
	*f = (struct cfi_frame){.known = 1u << CFI_BP | 1u << CFI_SP | 1u << CFI_PC};
	f->reg[CFI_BP] = saved;
	f->reg[CFI_SP] = pointer + 16;
	f->reg[CFI_PC] = pc;
	return CFI_CALLER;
}

/* back: whether the address is a return address. */
static enum cfi_result step(struct unwind *u, uint32_t space, bool back, struct cfi_frame *frame,
			    struct dump *dump, bool *is_signal)
{
	enum cfi_result result = CFI_UNKNOWN;
	struct place place;
	struct cfi *cfi;

	*is_signal = false;
	if (!maps_find(u->maps, space, frame->reg[CFI_PC] - back, &place))
		return CFI_UNKNOWN;
	cfi = place.file ? get_cfi(u, place.file) : NULL;
	if (cfi)
		result = cfi_step(cfi, place.offset, frame, &dump->memory, is_signal);
	return result == CFI_UNKNOWN ? follow_pointer(frame, dump) : result;
}

/* Writes the addresses, innermost first. Returns how many. */
static uint32_t walk(struct unwind *u, uint32_t space, struct cfi_frame *frame, struct dump *dump,
		     uint64_t *out)
{
	enum cfi_result result = CFI_CALLER;
	bool is_signal = true; /* the innermost frame was interrupted, too */
	uint32_t n = 0;

	while (result == CFI_CALLER && n < MAX_DEPTH) {
		uint64_t sp = frame->reg[CFI_SP], pc = frame->reg[CFI_PC];

		if (!pc)
			break;
		if (pc >= USER_END) {
			result = CFI_UNKNOWN;
			break;
		}
		out[n++] = pc;
		result = step(u, space, !is_signal, frame, dump, &is_signal);
		/* Only the innermost frame may have size 0, and no frame lies below another. */
		if (result == CFI_CALLER && frame->reg[CFI_SP] <= sp)
			result = CFI_UNKNOWN;
	}
	if (result == CFI_UNREADABLE && dump->was_short)
		u->stats.cut++;
	else if (result == CFI_UNKNOWN || result == CFI_UNREADABLE)
		u->stats.lost++;
	return n;
}

void unwind_event(struct unwind *u, const struct perf_event_attr *attr, const uint64_t *sample,
		  uint32_t size, struct event *ev)
{
	uint64_t *words = u->words + u->used_words, nr = ev->chain ? ev->chain[0] : 0, n;
	struct cfi_frame frame = {0};
	struct dump dump = {.memory = {read_dump}};

	if (!ev->chain || nr > MAX_CHAIN ||
	    CHAIN_WORDS - u->used_words < MAX_COUNT + nr + 2 + MAX_DEPTH ||
	    !read_registers(u, attr, sample, size, &frame))
		return;
	/* session_own_count() expects it before the chain. */
	if (attr->sample_type & PERF_SAMPLE_READ)
		for (const uint64_t *w = sample_read_before(attr, ev->chain); w < ev->chain; w++)
			*words++ = *w;
	read_copy(attr, sample, size, &dump);
	dump.start = frame.reg[CFI_SP];
	u->stats.stacks++;
	for (n = 1; n <= nr && ev->chain[n] != (uint64_t)PERF_CONTEXT_USER; n++)
		words[n] = ev->chain[n];
	words[n++] = (uint64_t)PERF_CONTEXT_USER;
	n += walk(u, maps_space(u->maps, ev->pid, ev->time), &frame, &dump, &words[n]);
	words[0] = n - 1;
	u->used_words = words + n - u->words;
	ev->chain = words;
}

void unwind_forget_chains(struct unwind *u)
{
	u->used_words = 0;
}

void unwind_read_stats(const struct unwind *u, struct unwind_stats *out)
{
	*out = u->stats;
}
