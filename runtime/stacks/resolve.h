/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a session needs to turn callchains into stacks with names: symbols, address spaces and
 * stacks, all updated from the stream.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct addresses;
struct buildids;
struct decoder;
struct event;
struct perf_event_header;
struct resolve;
struct srclines;
struct stacks;

struct resolve_stats {
	uint64_t stacks, stack_bytes;
	uint64_t with_user, short_user; /* stacks with a user half, and those whose user half has
					   one or two frames */
	uint64_t overflow; /* stacks that were counted as one because there were too many */
	uint64_t files, tables, symbol_bytes;
	uint64_t processes, map_bytes;
	uint64_t forgotten; /* address spaces or mappings, because of the memory bound */
	uint64_t unwound;   /* stacks whose user half was unwound from a copy of its memory */
	uint64_t cut;	    /* of these: the copy ended before the stack */
	uint64_t lost; /* of these: a frame led to something that is not code, or has no table */
	uint64_t gaps; /* of these: the kernel's chain continued it, but may lack callers */
	uint64_t unwind_bytes;
	uint8_t kernel_hidden; /* kernel symbols were looked up, but their addresses are hidden */
};

/* ids: the build ids of a recording; NULL: live, processes and their files can be looked at.
 * own_kernel: it was made on the running kernel. kernel: its table of kernel symbols, which is
 * not taken over; NULL: those of the running kernel. parts: the wanted halves of stacks, enum
 * stack_parts. Returns NULL without memory. */
struct resolve *resolve_new(const struct buildids *ids, bool own_kernel, struct addresses *kernel,
			    uint32_t parts);
void resolve_free(struct resolve *r);
/* Data addresses will be looked up, too. To be called before all that follows. */
void resolve_want_data(struct resolve *r);

/* Reads what all processes have mapped now. To be called when the kernel already reports
 * mappings. */
void resolve_seed(struct resolve *r);
/* Returns the name and the address of the symbol with which the kernel's mapping begins; NULL if
 * the record is not that mapping. */
const char *resolve_kernel_start(const struct perf_event_header *rec, const struct event *ev,
				 uint64_t *addr);
/* Reads a side-band record of the stream and the event that it was decoded to. */
void resolve_record(struct resolve *r, const struct perf_event_header *rec, const struct event *ev);

/* Unwinds the stack that came with the record of n events, if any, and sets their chain. It is
 * valid until resolve_begin_batch(). */
void resolve_unwind(struct resolve *r, const struct decoder *d, const struct perf_event_header *rec,
		    struct event *ev, int n);
void resolve_begin_batch(struct resolve *r);

uint32_t resolve_stack(struct resolve *r, const struct event *ev);
/* Returns the stack that consists of just this address. */
uint32_t resolve_address(struct resolve *r, const struct event *ev, uint64_t address);
struct stacks *resolve_stacks(struct resolve *r);
/* Returns NULL without memory. */
struct srclines *resolve_srclines(struct resolve *r);
void resolve_read_stats(const struct resolve *r, struct resolve_stats *out);
