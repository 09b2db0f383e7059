/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines of source: which line of which file an address of a program was compiled from, and which
 * functions were inlined there. Read from the program's debugging information by libdw; only for
 * what is printed, as it takes milliseconds for the first address of a file.
 */
#pragma once
#include <stdint.h>

struct srclines;
struct symbols;

struct srcline {
	const char *function; /* that was inlined; NULL for the function that has the address */
	const char *path;     /* of the source; NULL: not known */
	uint32_t line;
};

/* symbols must outlive it. NULL without memory. */
struct srclines *srclines_new(struct symbols *symbols);
void srclines_free(struct srclines *s);

/* The lines for the byte at this offset of the file (a number in symbols), innermost function
 * first, at most max. 0: nothing is known. The texts live as long as the symbols. */
uint32_t srclines_find(struct srclines *s, uint32_t file, uint64_t offset, struct srcline *out,
		       uint32_t max);
