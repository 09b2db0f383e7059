/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Source lines: the file and line that an address of a program was compiled from, and the functions
 * that were inlined there. libdw reads them from the debug information. Only for output: the first
 * address of a file takes milliseconds.
 */
#pragma once
#include <stdint.h>

struct srclines;
struct symbols;

struct srcline {
	const char *function; /* that was inlined; NULL: the function that contains the address */
	const char *path;     /* of the source file; NULL: unknown */
	uint32_t line;
};

/* symbols must outlive it. Returns NULL without memory. */
struct srclines *srclines_new(struct symbols *symbols);
void srclines_free(struct srclines *s);

/* Gets the lines of the byte at this offset of the file (a number in symbols), innermost function
 * first, at most max. Returns 0 if nothing is known. The texts live as long as the symbols. */
uint32_t srclines_find(struct srclines *s, uint32_t file, uint64_t offset, struct srcline *out,
		       uint32_t max);
