/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Resolve: what a session needs to turn the callchains of its events into stacks with names. Holds
 * the symbols, the address spaces and the stacks together, and feeds them from the stream.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct buildids;
struct decoder;
struct event;
struct perf_event_header;
struct resolve;
struct srclines;
struct stacks;

struct resolve_stats {
	uint64_t stacks, stack_bytes;
	uint64_t with_user,
		short_user; /* stacks with a user half, and with one of one or two frames */
	uint64_t overflow;  /* stacks that had to be counted as one: there were too many */
	uint64_t files, tables, symbol_bytes;
	uint64_t processes, map_bytes;
	uint64_t forgotten; /* address spaces or mappings, for want of memory */
	uint64_t unwound;   /* stacks whose user half was found in a copy of its memory */
	uint64_t cut;	    /* of these: the copy ended before the stack did */
	uint64_t lost;	    /* of these: what a frame led to was no code, or has no table */
	uint64_t unwind_bytes;
	uint8_t kernel_hidden; /* kernel symbols were asked for, but their addresses are hidden */
};

/* ids: what a recording tells of the files; NULL: live, processes and their files can be looked at.
 * own_kernel: it is the one that runs here. parts: the halves of stacks that are wanted, enum
 * stack_parts. NULL when out of memory. */
struct resolve *resolve_new(const struct buildids *ids, bool own_kernel, uint32_t parts);
void resolve_free(struct resolve *r);

/* Takes what all processes have mapped now. To be called when the kernel reports mappings already.
 */
void resolve_seed(struct resolve *r);
/* The name of the symbol, and the address, that the kernel's mapping begins with; NULL: it is not
 * that. */
const char *resolve_kernel_start(const struct perf_event_header *rec, const struct event *ev,
				 uint64_t *addr);
/* A side-band record of the stream and the event it was decoded to. */
void resolve_record(struct resolve *r, const struct perf_event_header *rec, const struct event *ev);

/* Unwinds the stack that came with the record of n events, if one did, into their chain. Valid
 * until resolve_begin_batch(). */
void resolve_unwind(struct resolve *r, const struct decoder *d, const struct perf_event_header *rec,
		    struct event *ev, int n);
void resolve_begin_batch(struct resolve *r);

uint32_t resolve_stack(struct resolve *r, const struct event *ev);
/* The stack of one frame that an address is. */
uint32_t resolve_address(struct resolve *r, const struct event *ev, uint64_t address);
struct stacks *resolve_stacks(struct resolve *r);
/* NULL without memory. */
struct srclines *resolve_srclines(struct resolve *r);
void resolve_read_stats(const struct resolve *r, struct resolve_stats *out);
