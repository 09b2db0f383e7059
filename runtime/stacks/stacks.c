/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A stack is stored as its addresses without marks, those of the kernel first. Chains are not
 * trusted: they are cut at the first address that user space cannot have, where a walk over frame
 * pointers went wrong.
 */
#include "stacks/stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <linux/perf_event.h>

#include "formats/addresses.h"
#include "symbols/ksymbols.h"
#include "stacks/maps.h"
#include "symbols/symbols.h"

#define NO_STACK   UINT32_MAX
#define USER_START 4096 /* vm.mmap_min_addr: nothing is mapped below */
#define USER_END   (1ULL << 48)

enum {
	MAX_DEPTH = 1024, /* less than FIRST_WORDS: doubled, there is room for one more */
	MAX_STACKS = 1 << 24,
	USUAL_DEPTH = 32, /* words per stack that memory is reserved for */
	FEW = 3,	  /* frames that a complete user half has at least */
	FIRST_SLOTS = 256,
	FIRST_WORDS = 4096,
};

struct slot {
	uint32_t hash, id; /* NO_STACK: free */
};

struct stack {
	uint64_t first; /* index into words */
	uint32_t space; /* address space; 0: unknown, or there is no user part */
	uint16_t nr_kernel;
	uint16_t nr_user : 14, own : 2; /* enum own_frames */
};

/* The first frames of a stack: those of a program of this process, which has written the sample,
 * and of its caller. They are not the event's. */
enum own_frames { OWN_UNKNOWN, OWN_NONE, OWN_PROGRAM, OWN_PROGRAM_AND_STUB };

struct stacks {
	struct symbols *symbols;
	struct maps *maps;
	struct addresses *kernel;
	struct ksymbols *ksymbols;
	uint64_t kernel_start;
	struct slot *slots;
	struct stack *stacks; /* by id; room for half of the slots */
	uint64_t *words;
	uint32_t mask; /* slots - 1 */
	uint32_t count, max_stacks;
	uint32_t with_user, short_user; /* of these */
	uint64_t used_words, room_words, max_words;
	uint64_t overflow;
	uint64_t seed, factor;	     /* of the hash, which is seeded because traced programs choose
					addresses and must not choose collisions */
	uint64_t scratch[MAX_DEPTH]; /* the stack that is being looked up */
};

static void clear_slots(struct stacks *s)
{
	memset(s->slots, 0xff, ((size_t)s->mask + 1) * sizeof(*s->slots));
}

struct stacks *stacks_new(struct symbols *symbols, struct maps *maps, struct addresses *kernel,
			  struct ksymbols *ksymbols, uint32_t max_stacks)
{
	struct stacks *s = calloc(1, sizeof(*s));
	uint64_t secret[2];

	if (!s)
		return NULL;
	s->symbols = symbols;
	s->maps = maps;
	s->kernel = kernel;
	s->ksymbols = ksymbols;
	s->kernel_start = 1ULL << 63;
	s->max_stacks = max_stacks < MAX_STACKS ? max_stacks : MAX_STACKS;
	s->mask = FIRST_SLOTS - 1;
	s->room_words = FIRST_WORDS;
	s->max_words = (uint64_t)s->max_stacks * USUAL_DEPTH;
	s->slots = malloc(FIRST_SLOTS * sizeof(*s->slots));
	s->stacks = malloc(FIRST_SLOTS / 2 * sizeof(*s->stacks));
	s->words = malloc(FIRST_WORDS * sizeof(*s->words));
	if (!s->slots || !s->stacks || !s->words) {
		stacks_free(s);
		return NULL;
	}
	/* Without entropy (early boot) the table still works. */
	s->factor = 0x9e3779b97f4a7c15ULL;
	if (getrandom(secret, sizeof(secret), GRND_NONBLOCK) == sizeof(secret)) {
		s->seed = secret[0];
		s->factor = secret[1];
	}
	clear_slots(s);
	return s;
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	free(s->slots);
	free(s->stacks);
	free(s->words);
	free(s);
}

void stacks_start_kernel(struct stacks *s, uint64_t addr)
{
	s->kernel_start = addr;
}

void stacks_clear(struct stacks *s)
{
	s->count = s->with_user = s->short_user = 0;
	s->used_words = 0;
	s->overflow = 0;
	clear_slots(s);
	maps_forget_spaces(s->maps);
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Returns the part of a stack that follows a mark; 0 for parts of a guest or hypervisor. */
static uint32_t part_after(uint64_t mark)
{
	switch (mark) {
	case (uint64_t)PERF_CONTEXT_KERNEL:
		return STACK_KERNEL;
	case (uint64_t)PERF_CONTEXT_USER:
		return STACK_USER;
	default:
		return 0;
	}
}

static bool is_mark(uint64_t ip)
{
	return ip >= (uint64_t)PERF_CONTEXT_MAX;
}

/* Copies the wanted addresses to scratch. */
static void read_chain(struct stacks *s, const uint64_t *chain, uint32_t parts, struct stack *out)
{
	uint64_t nr = chain[0], i = 1;
	uint32_t n = 0, nr_kernel = 0, part;

	/* A chain without marks has only one part. */
	part = nr && chain[1] < s->kernel_start && !maps_find_module(s->maps, chain[1])
		       ? STACK_USER
		       : STACK_KERNEL;
	while (i <= nr && n < MAX_DEPTH) {
		uint64_t end = part == STACK_USER ? USER_END : (uint64_t)PERF_CONTEXT_MAX;

		if (is_mark(chain[i])) {
			part = part_after(chain[i++]);
			continue;
		}
		/* The kernel's part comes first: one that follows the user's part is not valid. */
		if (!(part & parts) || chain[i] >= end || (part == STACK_KERNEL && n > nr_kernel)) {
			part = 0;
			i++;
			continue;
		}
		while (i <= nr && n < MAX_DEPTH && chain[i] < end)
			s->scratch[n++] = chain[i++];
		if (part == STACK_KERNEL)
			nr_kernel = n;
		/* What calls main() may have no frame pointer. Then the kernel takes what is on the
		 * stack there for an address, such as argc in 32-bit programs. */
		else if (i > nr && n > nr_kernel + 1 && s->scratch[n - 1] < USER_START &&
			 s->scratch[n - 1])
			n--;
	}
	out->nr_kernel = (uint16_t)nr_kernel;
	out->nr_user = (uint16_t)(n - nr_kernel);
}

/* Two words at a time, because each multiplication has to wait for the one before. */
static uint32_t hash_stack(const struct stacks *s, const struct stack *stack)
{
	uint32_t depth = stack->nr_kernel + stack->nr_user, i;
	uint64_t hash = s->seed ^ ((uint64_t)stack->space << 32 | stack->nr_kernel);

	for (i = 0; i + 1 < depth; i += 2)
		hash = multiply(hash ^ s->scratch[i], s->factor ^ s->scratch[i + 1]);
	if (i < depth)
		hash = multiply(hash ^ s->scratch[i], s->factor);
	hash = multiply(hash, s->factor);
	return (uint32_t)(hash ^ hash >> 32);
}

static void place(struct stacks *s, uint32_t hash, uint32_t id)
{
	uint32_t i = hash & s->mask;

	while (s->slots[i].id != NO_STACK)
		i = (i + 1) & s->mask;
	s->slots[i] = (struct slot){hash, id};
}

static bool grow_slots(struct stacks *s)
{
	size_t n = (size_t)s->mask + 1;
	struct slot *old = s->slots, *slots = malloc(2 * n * sizeof(*slots));
	struct stack *stacks = reallocarray(s->stacks, n, sizeof(*stacks));

	if (stacks)
		s->stacks = stacks;
	if (!stacks || !slots) {
		free(slots);
		return false;
	}
	s->slots = slots;
	s->mask = (uint32_t)(2 * n - 1);
	clear_slots(s);
	for (size_t i = 0; i < n; i++)
		if (old[i].id != NO_STACK)
			place(s, old[i].hash, old[i].id);
	free(old);
	return true;
}

static bool grow_words(struct stacks *s, uint32_t depth)
{
	uint64_t room = 2 * s->room_words, *words;

	if (s->used_words + depth > s->max_words)
		return false;
	room = room < s->max_words ? room : s->max_words;
	words = reallocarray(s->words, room, sizeof(*words));
	if (!words)
		return false;
	s->words = words;
	s->room_words = room;
	return true;
}

static uint32_t insert(struct stacks *s, uint32_t hash, const struct stack *stack, uint32_t parts)
{
	uint32_t depth = stack->nr_kernel + stack->nr_user;

	if (s->count >= s->max_stacks || (s->count >= s->mask / 2 && !grow_slots(s)) ||
	    (s->used_words + depth > s->room_words && !grow_words(s, depth))) {
		s->overflow++;
		return s->max_stacks;
	}
	if (stack->nr_user > 0 && !(parts & STACK_ADDRESS)) {
		s->with_user++;
		s->short_user += stack->nr_user < FEW;
	}
	s->stacks[s->count] = *stack;
	s->stacks[s->count].first = s->used_words;
	memcpy(s->words + s->used_words, s->scratch, depth * sizeof(*s->words));
	s->used_words += depth;
	place(s, hash, s->count);
	return s->count++;
}

static bool is_stack(const struct stacks *s, uint32_t id, const struct stack *stack)
{
	const struct stack *known = &s->stacks[id];
	const uint64_t *words = s->words + known->first;
	uint64_t differ = 0;
	uint32_t depth = stack->nr_kernel + stack->nr_user;

	if (known->space != stack->space || known->nr_kernel != stack->nr_kernel ||
	    known->nr_user != stack->nr_user)
		return false;
	/* They are nearly always equal, so there is no early exit. */
	for (uint32_t i = 0; i < depth; i++)
		differ |= words[i] ^ s->scratch[i];
	return !differ;
}

uint32_t stacks_intern(struct stacks *s, int32_t pid, double time, const uint64_t *chain,
		       uint32_t parts)
{
	static const uint64_t empty = 0;
	struct stack stack = {0};
	uint32_t hash, i;

	read_chain(s, chain ? chain : &empty, parts, &stack);
	if (stack.nr_user)
		stack.space = maps_space(s->maps, pid, time);
	hash = hash_stack(s, &stack);
	for (i = hash & s->mask; s->slots[i].id != NO_STACK; i = (i + 1) & s->mask)
		if (s->slots[i].hash == hash && is_stack(s, s->slots[i].id, &stack))
			return s->slots[i].id;
	return insert(s, hash, &stack, parts);
}

/* back: how far before the address its instruction is. A return address may be the first one after
 * its function, if the call was the last instruction. */
static void find_kernel(struct stacks *s, uint64_t back, struct frame *out)
{
	uint64_t start;

	out->in_kernel = true;
	out->dso = "[kernel.kallsyms]";
	if (s->ksymbols)
		out->symbol = ksymbols_find(s->ksymbols, out->address - back, &start);
	if (out->symbol)
		out->dso = "[bpf]";
	else if (s->kernel)
		out->symbol =
			addresses_find_frame(s->kernel, out->address - back, &start, &out->dso);
	if (!out->symbol) {
		const char *module = maps_find_module(s->maps, out->address - back);

		out->dso = module ? module : out->dso;
		return;
	}
	out->kind = FRAME_KERNEL;
	out->symbol_offset = out->address - start;
}

/* Finds the symbol of the byte that lies `back` before the frame's address. Returns false if there
 * is none. */
static bool find_function(struct stacks *s, const struct place *place, uint64_t back,
			  struct frame *out)
{
	struct symbol symbol = {0};

	if (symbols_find(s->symbols, place->file, place->offset - back, &symbol))
		out->kind = FRAME_USER;
	else if ((!place->file || strncmp(out->dso, "/memfd:", 7) == 0) &&
		 maps_find_jit(s->maps, place->pid, out->address - back, &symbol, &out->dso))
		out->kind = FRAME_JIT;
	out->symbol = symbol.name;
	out->symbol_offset = symbol.name ? symbol.offset + back : 0;
	out->back = (uint32_t)back;
	return symbol.name;
}

/* Finds the variable at an address. */
static void find_variable(struct stacks *s, const struct place *place, struct frame *out)
{
	struct symbol symbol;

	out->kind = FRAME_DATA;
	if (!symbols_find(s->symbols, place->file, place->offset, &symbol) && place->file_before &&
	    symbols_find(s->symbols, place->file_before, place->offset_before, &symbol)) {
		out->file = place->file_before;
		out->offset = place->offset_before;
		out->dso = symbols_path(s->symbols, out->file);
	}
	out->symbol = symbol.name;
	out->symbol_offset = symbol.offset;
}

static void find_user(struct stacks *s, uint32_t space, uint64_t back, struct frame *out)
{
	struct place place;

	if (!maps_find(s->maps, space, out->address - back, &place))
		return;
	place.offset += back;
	out->file = place.file;
	out->offset = place.offset;
	out->dso = place.file ? symbols_path(s->symbols, place.file) : "[anon]";
	if (symbols_is_data(s->symbols, place.file)) {
		find_variable(s, &place, out);
		return;
	}
	/* No call ends where no function ends: this return address is really the start of a
	 * function. */
	if (!find_function(s, &place, back, out) && back)
		find_function(s, &place, 0, out);
}

/* Returns whether the name of a frame in the kernel begins so, and contains the part. */
static bool is_frame_of(struct stacks *s, uint64_t address, const char *begin, const char *part)
{
	struct frame frame = {.address = address};

	find_kernel(s, 1, &frame);
	return frame.symbol && !strncmp(frame.symbol, begin, strlen(begin)) &&
	       strstr(frame.symbol, part);
}

static enum own_frames find_own(struct stacks *s, const struct stack *stack)
{
	const uint64_t *words = s->words + stack->first;

	/* Programs have names that begin with ps_, after a tag. */
	if (stack->nr_kernel < 3 || !is_frame_of(s, words[0], "bpf_prog_", "_ps_") ||
	    !is_frame_of(s, words[1], "bpf_trace_run", ""))
		return OWN_NONE;
	return is_frame_of(s, words[2], "__bpf_trace_", "") ? OWN_PROGRAM_AND_STUB : OWN_PROGRAM;
}

bool stacks_frame(struct stacks *s, uint32_t id, uint32_t index, struct frame *out)
{
	struct stack *stack = id < s->count ? &s->stacks[id] : NULL;
	bool innermost;

	*out = (struct frame){0};
	if (stack && stack->own == OWN_UNKNOWN)
		stack->own = find_own(s, stack) & 3;
	if (stack && stack->own > OWN_NONE)
		index += stack->own;
	if (!stack || index >= (uint32_t)stack->nr_kernel + stack->nr_user)
		return false;
	out->address = s->words[stack->first + index];
	if (index < stack->nr_kernel) {
		find_kernel(s, index > 0, out);
		return true;
	}
	innermost = index == stack->nr_kernel;
	find_user(s, stack->space, !innermost, out);
	/* Within execve() the calling program is already gone. */
	if (!out->dso && innermost && stack->nr_kernel)
		find_user(s, maps_space_before(s->maps, stack->space), 0, out);
	return true;
}

void stacks_read_stats(const struct stacks *s, struct stacks_stats *out)
{
	*out = (struct stacks_stats){
		.bytes = s->room_words * sizeof(*s->words) +
			 ((uint64_t)s->mask + 1) * (sizeof(*s->slots) + sizeof(*s->stacks) / 2),
		.stacks = s->count,
		.with_user = s->with_user,
		.short_user = s->short_user,
		.overflow = s->overflow,
	};
}
