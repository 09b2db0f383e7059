/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unwinds the user half of a stack from the registers and the copy of the stack's memory that came
 * with an event, for code without frame pointers. If the event also has the kernel's chain of user
 * frames, that continues the stack where the copy ends. The result is a callchain like the
 * kernel's. x86-64, 64-bit programs.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct event;
struct maps;
struct perf_event_attr;
struct symbols;
struct unwind;

struct unwind_stats {
	uint64_t stacks; /* unwound so far */
	uint64_t cut;	 /* the copy ended before the stack */
	uint64_t lost;	 /* an address has no table, or is not in code */
	uint64_t gaps;	 /* the kernel's chain continued it, but may lack callers */
	uint64_t bytes;	 /* of tables */
};

/* The arguments must outlive it. Returns NULL without memory. */
struct unwind *unwind_new(struct symbols *symbols, struct maps *maps);
void unwind_free(struct unwind *u);

/* Returns the registers to ask perf_event_open() for; 0 if this machine is not supported. */
uint64_t unwind_registers(void);
/* Returns whether samples of this attribute can be unwound. */
bool unwind_is_for(const struct perf_event_attr *attr);

/* Replaces the chain of an event, decoded from a sample of this many words, by one that includes
 * the user half. It is valid until unwind_forget_chains(). */
void unwind_event(struct unwind *u, const struct perf_event_attr *attr, const uint64_t *sample,
		  uint32_t size, struct event *ev);
void unwind_forget_chains(struct unwind *u);
/* A process has mapped something, which the maps know already. */
void unwind_maps_changed(struct unwind *u, const struct event *ev);

void unwind_read_stats(const struct unwind *u, struct unwind_stats *out);
