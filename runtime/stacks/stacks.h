/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stacks as small integers: the first stack is 0, the next new one is 1, and so on. Stacks are
 * equal if they have the same addresses and, for user space, the same address space. Symbols are
 * looked up when a frame is asked for.
 *
 * Memory is bounded: beyond max_stacks, or the memory for that many stacks of usual depth, every
 * new stack gets the id max_stacks, which has no frames.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct addresses;
struct ksymbols;
struct maps;
struct stacks;
struct symbols;

enum stack_parts {
	STACK_KERNEL = 1,
	STACK_USER = 2,
	STACK_ADDRESS =
		4, /* a single address, not a recorded stack; it is not counted as a short one */
};

enum frame_kind {
	FRAME_UNKNOWN, /* no symbol is known; the dso may be */
	FRAME_KERNEL,
	FRAME_USER,
	FRAME_JIT, /* code that a process compiled for itself */
	FRAME_DATA /* not code; the symbol may be unknown, and the dso "[heap]" */
};

struct frame {
	uint64_t address;
	const char *symbol;	/* NULL: unknown. Lives as long as the symbols. */
	uint64_t symbol_offset; /* bytes from the symbol's start to address */
	const char *dso; /* file, "[kernel.kallsyms]", "[module]", "[anon]"; NULL: not mapped */
	uint64_t offset; /* of address, in the file */
	uint32_t file;	 /* number in symbols, 0: none */
	uint32_t back;	 /* address - back was looked up: 1 for return addresses */
	enum frame_kind kind;
	bool in_kernel; /* in the kernel's half of the stack */
};

struct stacks_stats {
	uint64_t bytes;
	uint32_t stacks;
	uint32_t with_user,
		short_user; /* with a user half, and with one of fewer than three frames */
	uint64_t overflow;  /* how often the id max_stacks was returned */
};

/* The arguments must outlive the stacks. kernel and ksymbols may be NULL. Returns NULL without
 * memory. */
struct stacks *stacks_new(struct symbols *symbols, struct maps *maps, struct addresses *kernel,
			  struct ksymbols *ksymbols, uint32_t max_stacks);
void stacks_free(struct stacks *s);
/* Addresses from here on are the kernel's; by default the upper half of 64 bits. */
void stacks_start_kernel(struct stacks *s, uint64_t addr);
/* Forgets all stacks; ids start at 0 again. */
void stacks_clear(struct stacks *s);

/* Returns the id of a callchain of struct event (its length, then addresses innermost first, with
 * the kernel's marks between the parts) that process pid had at time. parts: the wanted halves.
 * NULL is a chain without addresses. */
uint32_t stacks_intern(struct stacks *s, int32_t pid, double time, const uint64_t *chain,
		       uint32_t parts);

/* Gets the frame with this index: 0 is the innermost, and those of the kernel's half come first.
 * Returns false if there is none. */
bool stacks_frame(struct stacks *s, uint32_t id, uint32_t index, struct frame *out);

void stacks_read_stats(const struct stacks *s, struct stacks_stats *out);
