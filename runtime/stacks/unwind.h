/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unwind: the user half of a stack from registers and a copy of the stack's memory that came with
 * the event, for programs without frame pointers. The result is a callchain like the kernel's.
 * x86-64, 64-bit programs.
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
	uint64_t stacks; /* that were asked for */
	uint64_t cut;	 /* the copy of the memory ended before the stack did */
	uint64_t lost;	 /* no table has an address, or what it leads to is no code */
	uint64_t bytes;	 /* of tables */
};

/* What it is given must outlive it. NULL without memory. */
struct unwind *unwind_new(struct symbols *symbols, struct maps *maps);
void unwind_free(struct unwind *u);

/* Registers that perf_event_open() is to be asked for; 0: this machine is not supported. */
uint64_t unwind_registers(void);
/* Whether samples of this attribute can be unwound. */
bool unwind_is_for(const struct perf_event_attr *attr);

/* Replaces the chain of an event, decoded from a sample of so many words, by one that has the user
 * half too. The chain is valid until unwind_forget_chains(). */
void unwind_event(struct unwind *u, const struct perf_event_attr *attr, const uint64_t *sample,
		  uint32_t size, struct event *ev);
void unwind_forget_chains(struct unwind *u);

void unwind_read_stats(const struct unwind *u, struct unwind_stats *out);
