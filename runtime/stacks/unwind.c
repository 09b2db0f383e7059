/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs get to the same place again and again by the same way. So the newest walks are kept,
 * with the words of the stack that they have read: if these are the same in another copy, so are
 * the frames.
 *
 * Tables belong to files, whatever processes map them. If there are many or large ones, they are
 * all forgotten at once. Code that a program compiled for itself has no table: it can be unwound
 * only with frame pointers.
 */
#include "stacks/unwind.h"

#include <stddef.h>
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
	NR_WALKS = 1 << 10,
	WAYS = 4,	     /* walks with the same hash */
	MAX_READS = 48,	     /* words of the stack that a walk which is kept may read */
	WALK_DEPTH = 48,     /* and how many frames it and the kernel may find */
	NR_CHANGES = 1 << 10 /* counters of changed mappings */
};

/* Walks depend on these registers at most, otherwise they are not kept. */
#define WALK_REGISTERS (1u << CFI_PC | 1u << CFI_SP | 1u << CFI_BP | CFI_RESTORED_BP)

#define USER_END (1ULL << 47)

struct file {
	bool tried;
	struct cfi *cfi; /* NULL: not readable */
};

enum end { WALK_WHOLE, WALK_CUT, WALK_LOST, WALK_GAPS };

/* The frames that were found with tables from some registers and words of a stack, and those that
 * the kernel had followed beyond. */
struct walk {
	uint64_t pc, sp, bp;
	uint32_t space, size, changes; /* size: of the copy */
	bool is_kept, needs_bp;
	uint8_t end, joined_end; /* enum end */
	uint8_t nr_reads, nr_frames, nr_joined, nr_followed;
	uint32_t joined_at;	/* the first of `followed` that was taken */
	uint32_t used, known;	/* of the last frame */
	uint16_t last_bp;	/* where the last frame pointer was restored from */
	uint16_t at[MAX_READS]; /* offsets in the copy */
	bool is_bp[MAX_READS];
	uint64_t word[MAX_READS];
	uint64_t followed[WALK_DEPTH], frames[WALK_DEPTH]; /* frames: first those of tables */
};

struct unwind {
	struct symbols *symbols;
	struct maps *maps;
	struct file *files; /* by number */
	uint32_t room, nr_open;
	uint64_t *words; /* chains of this batch */
	uint32_t used_words;
	struct walk *walks; /* by hash */
	uint32_t next_way;
	uint32_t changes[NR_CHANGES]; /* of mappings, by space */
	struct unwind_stats stats;
};

/* The copy of a stack. */
struct dump {
	struct cfi_memory memory; /* first: passed to the readers */
	const uint8_t *bytes;
	uint64_t start, size;
	bool was_short;	  /* something beyond its end was read */
	struct walk *log; /* gets what is read; NULL: too much was */
	uint64_t pointer; /* the frame pointer of the event */
	/* The frames that the kernel found by following that: the first is the event's own, and the
	 * caller of each is at the next pointer. */
	const uint64_t *followed;
	uint32_t nr_followed;
};

struct unwind *unwind_new(struct symbols *symbols, struct maps *maps)
{
	struct unwind *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->symbols = symbols;
	u->maps = maps;
	u->words = malloc(CHAIN_WORDS * sizeof(*u->words));
	u->walks = calloc(NR_WALKS, sizeof(*u->walks));
	if (!u->words || !u->walks) {
		unwind_free(u);
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
	free(u->walks);
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

/* Notes what has been read. Registers other than the frame pointer are nearly never used. */
static void log_read(struct dump *d, uint16_t at, int number, uint64_t word)
{
	struct walk *w = d->log;

	if (number != CFI_PC && number != CFI_SP && number != CFI_BP)
		return;
	if (w->nr_reads == MAX_READS) {
		d->log = NULL;
		return;
	}
	w->at[w->nr_reads] = at;
	w->is_bp[w->nr_reads] = number == CFI_BP;
	w->word[w->nr_reads++] = word;
	if (number == CFI_BP)
		w->last_bp = at;
}

static bool read_dump(const struct cfi_memory *m, uint64_t addr, int number, uint64_t *word)
{
	struct dump *d = (struct dump *)m;

	if (addr < d->start || addr - d->start >= d->size || d->size - (addr - d->start) < 8) {
		d->was_short |= addr >= d->start && addr - d->start < 16 << 20;
		return false;
	}
	memcpy(word, d->bytes + (addr - d->start), sizeof(*word));
	if (d->log)
		log_read(d, (uint16_t)(addr - d->start), number, *word);
	return true;
}

/* Returns false if there are none, as for a kernel thread. */
static bool read_registers(const struct perf_event_attr *attr, const uint64_t *words, uint32_t nr,
			   struct cfi_frame *frame, bool *is_32)
{
	uint64_t mask = attr->sample_regs_user;
	uint32_t size;
	const uint64_t *part = sample_part(attr, words, nr, PERF_SAMPLE_REGS_USER, &size);

	if (!part || (part[0] != REGISTERS_64 && part[0] != REGISTERS_32))
		return false;
	*is_32 = part[0] == REGISTERS_32;
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
	if (!d->memory.read(&d->memory, pointer, CFI_BP, &saved) ||
	    !d->memory.read(&d->memory, pointer + 8, CFI_PC, &pc))
		return CFI_UNREADABLE;
	*f = (struct cfi_frame){.known = 1u << CFI_BP | 1u << CFI_SP | 1u << CFI_PC,
				.used = f->used | 1u << CFI_BP | CFI_RESTORED_BP};
	f->reg[CFI_BP] = saved;
	f->reg[CFI_SP] = pointer + 16;
	f->reg[CFI_PC] = pc;
	return CFI_CALLER;
}

/* Returns whether an address is in code. *cfi becomes the tables of its file, NULL if there are
 * none. */
static bool find_table(struct unwind *u, uint32_t space, uint64_t addr, struct place *place,
		       struct cfi **cfi)
{
	if (!maps_find(u->maps, space, addr, place))
		return false;
	*cfi = place->file ? get_cfi(u, place->file) : NULL;
	return true;
}

/* back: whether the address is a return address. */
static enum cfi_result step(struct unwind *u, uint32_t space, bool back, struct cfi_frame *frame,
			    struct dump *dump, bool *is_signal)
{
	enum cfi_result result = CFI_UNKNOWN;
	struct place place;
	struct cfi *cfi;

	*is_signal = false;
	if (!find_table(u, space, frame->reg[CFI_PC] - back, &place, &cfi))
		return CFI_UNKNOWN;
	if (cfi)
		result = cfi_step(cfi, place.offset, frame, &dump->memory, is_signal);
	/* A system call is the last instruction of the code that returns from signals. */
	if (cfi && result == CFI_UNKNOWN && !back && place.offset)
		result = cfi_step(cfi, place.offset - 1, frame, &dump->memory, is_signal);
	return result == CFI_UNKNOWN ? follow_pointer(frame, dump) : result;
}

/* Returns how many frames the kernel had followed when it reached the frame pointer of this frame;
 * 0: it did not, as far as the copy shows. */
static uint32_t find_pointer(const struct dump *d, const struct cfi_frame *frame)
{
	uint64_t pointer = d->pointer, next;

	if (!(frame->known >> CFI_BP & 1))
		return 0;
	for (uint32_t n = 1; n < d->nr_followed; n++) {
		if (pointer == frame->reg[CFI_BP])
			return n;
		if (!d->memory.read(&d->memory, pointer, CFI_BP, &next) || next <= pointer)
			return 0;
		pointer = next;
	}
	return 0;
}

/* Returns whether the function at a return address has a frame pointer there. */
static bool has_pointer(struct unwind *u, uint32_t space, uint64_t addr)
{
	struct place place;
	struct cfi *cfi;

	return find_table(u, space, addr - 1, &place, &cfi) &&
	       (!cfi || cfi_has_pointer(cfi, place.offset));
}

/* Beyond the copy, the kernel's frames from number i on are the callers of the last one, out[n -
 * 1], if that has a frame pointer. If it has none, or one of the kernel's frames, callers of these
 * are missing. Returns how many frames there are then. */
static uint32_t append_followed(struct unwind *u, uint32_t space, uint32_t i, const struct dump *d,
				uint64_t *out, uint32_t n, enum end *end)
{
	struct place place;

	*end = WALK_WHOLE;
	for (; i < d->nr_followed && n < MAX_DEPTH; i++) {
		if (d->followed[i] >= USER_END ||
		    !maps_find(u->maps, space, d->followed[i] - 1, &place))
			break;
		if (!has_pointer(u, space, out[n - 1]))
			*end = WALK_GAPS;
		out[n++] = d->followed[i];
	}
	return n;
}

/* Writes the addresses, innermost first. Returns how many. */
static uint32_t walk(struct unwind *u, uint32_t space, struct cfi_frame *frame, struct dump *dump,
		     uint64_t *out, enum end *end)
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
	*end = result == CFI_UNREADABLE && dump->was_short	   ? WALK_CUT
	       : result == CFI_UNREADABLE || result == CFI_UNKNOWN ? WALK_LOST
								   : WALK_WHOLE;
	return n;
}

/* Returns whether a walk from these registers through this copy finds the frames of another one. */
static bool is_same(const struct walk *w, const struct walk *key, const struct dump *d)
{
	uint64_t differ = (w->pc ^ key->pc) | (w->sp ^ key->sp), word;

	if (!w->is_kept || differ || w->space != key->space || w->changes != key->changes ||
	    w->size != key->size || (w->needs_bp && w->bp != key->bp))
		return false;
	for (uint32_t i = 0; i < w->nr_reads; i++) {
		memcpy(&word, d->bytes + w->at[i], sizeof(word));
		differ |= word ^ w->word[i];
	}
	return !differ;
}

/* Returns the walk that is the same, or one that may be replaced. */
static struct walk *find_walk(struct unwind *u, const struct walk *key, const struct dump *d,
			      bool *found)
{
	uint64_t hash = (key->pc ^ key->sp << 20 ^ key->space) * 0x9e3779b97f4a7c15ULL;
	struct walk *set = &u->walks[(hash >> 40) % (NR_WALKS / WAYS) * WAYS];

	for (uint32_t i = 0; i < WAYS; i++)
		if (is_same(&set[i], key, d)) {
			*found = true;
			return &set[i];
		}
	*found = false;
	return &set[u->next_way++ % WAYS];
}

/* Programs without frame pointers save what they like in that register. */
static void forget_pointers(struct walk *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->nr_reads; i++) {
		if (w->is_bp[i])
			continue;
		w->at[n] = w->at[i];
		w->word[n++] = w->word[i];
	}
	w->nr_reads = n;
}

/* Finds the frames of the tables, or takes those of a former walk. Returns how many. */
static uint32_t find_frames(struct unwind *u, const struct walk *key, struct walk *w, bool found,
			    struct cfi_frame *frame, struct dump *dump, uint64_t *out,
			    enum end *end)
{
	uint32_t n;

	if (found) {
		*end = w->end;
		*frame = (struct cfi_frame){.known = w->known, .used = w->used};
		frame->reg[CFI_BP] = key->bp;
		if (w->used & CFI_RESTORED_BP)
			memcpy(&frame->reg[CFI_BP], dump->bytes + w->last_bp, sizeof(uint64_t));
		memcpy(out, w->frames, w->nr_frames * sizeof(*out));
		return w->nr_frames;
	}
	memcpy(w, key, offsetof(struct walk, last_bp));
	dump->log = w;
	n = walk(u, key->space, frame, dump, out, end);
	w->is_kept = dump->log && !(frame->used & ~WALK_REGISTERS) && n <= WALK_DEPTH;
	dump->log = NULL;
	if (!w->is_kept)
		return n;
	w->needs_bp = frame->used >> CFI_BP & 1;
	if (!w->needs_bp)
		forget_pointers(w);
	w->end = *end;
	w->used = frame->used;
	w->known = frame->known;
	w->nr_frames = n;
	memcpy(w->frames, out, n * sizeof(*out));
	return n;
}

/* Appends what the kernel has followed beyond the n frames of the tables. Returns how many frames
 * there are then. */
static uint32_t join_followed(struct unwind *u, struct walk *w, const struct cfi_frame *frame,
			      const struct dump *d, uint64_t *out, uint32_t n, enum end *end)
{
	uint64_t bytes = d->nr_followed * sizeof(*out);
	uint32_t at = find_pointer(d, frame), all;

	if (!at)
		return n;
	if (w->nr_joined && w->joined_at == at && w->nr_followed == d->nr_followed &&
	    !memcmp(w->followed, d->followed, bytes)) {
		*end = w->joined_end;
		memcpy(&out[n], &w->frames[n], (w->nr_joined - n) * sizeof(*out));
		return w->nr_joined;
	}
	all = append_followed(u, w->space, at, d, out, n, end);
	w->nr_joined = w->is_kept && all <= WALK_DEPTH && d->nr_followed <= WALK_DEPTH ? all : 0;
	if (w->nr_joined) {
		w->joined_end = *end;
		w->joined_at = at;
		w->nr_followed = d->nr_followed;
		memcpy(w->followed, d->followed, bytes);
		memcpy(&w->frames[n], &out[n], (all - n) * sizeof(*out));
	}
	return all;
}

/* Writes the addresses of the user half, innermost first. Returns how many. */
static uint32_t find_user_half(struct unwind *u, const struct event *ev, struct cfi_frame *frame,
			       struct dump *dump, uint64_t *out)
{
	uint32_t space = maps_space(u->maps, ev->pid, ev->time);
	const struct walk key = {.pc = frame->reg[CFI_PC],
				 .sp = frame->reg[CFI_SP],
				 .bp = frame->reg[CFI_BP],
				 .space = space,
				 .size = (uint32_t)dump->size,
				 .changes = u->changes[space % NR_CHANGES]};
	bool found;
	struct walk *w = find_walk(u, &key, dump, &found);
	enum end end;
	uint32_t n = find_frames(u, &key, w, found, frame, dump, out, &end);

	if (end != WALK_WHOLE && dump->nr_followed)
		n = join_followed(u, w, frame, dump, out, n, &end);
	u->stats.cut += end == WALK_CUT;
	u->stats.lost += end == WALK_LOST;
	u->stats.gaps += end == WALK_GAPS;
	return n;
}

void unwind_event(struct unwind *u, const struct perf_event_attr *attr, const uint64_t *sample,
		  uint32_t size, struct event *ev)
{
	uint64_t *words = u->words + u->used_words, nr = ev->chain ? ev->chain[0] : 0, n;
	struct cfi_frame frame = {0};
	struct dump dump = {.memory = {read_dump}};
	bool is_32;

	if (!ev->chain || nr > MAX_CHAIN ||
	    CHAIN_WORDS - u->used_words < MAX_COUNT + nr + 2 + MAX_DEPTH ||
	    !read_registers(attr, sample, size, &frame, &is_32))
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
	if (is_32 && n < nr) {
		u->stats.lost++;
		return;
	}
	if (n < nr && frame.known >> CFI_BP & 1) {
		dump.pointer = frame.reg[CFI_BP];
		dump.followed = &ev->chain[n + 1];
		dump.nr_followed = (uint32_t)(nr - n);
	}
	words[n++] = (uint64_t)PERF_CONTEXT_USER;
	if (is_32) { /* their tables describe other registers */
		u->stats.lost++;
		words[n++] = frame.reg[CFI_PC];
	} else {
		n += find_user_half(u, ev, &frame, &dump, &words[n]);
	}
	words[0] = n - 1;
	u->used_words = words + n - u->words;
	ev->chain = words;
}

void unwind_forget_chains(struct unwind *u)
{
	u->used_words = 0;
}

void unwind_maps_changed(struct unwind *u, const struct event *ev)
{
	u->changes[maps_space(u->maps, ev->pid, ev->time) % NR_CHANGES]++;
}

void unwind_read_stats(const struct unwind *u, struct unwind_stats *out)
{
	*out = u->stats;
}
