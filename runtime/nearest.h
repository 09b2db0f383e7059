/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The name that a misspelt word most likely meant, by edit distance. Messages about unknown
 * events, fields, options and profilers propose it. A search ends after some time, because a
 * program can have millions of symbols.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NEAREST_MAX = 127 }; /* longer words and names are not compared */

/* A search: nearest_start(), then nearest_try() for each valid name. */
struct nearest {
	char word[NEAREST_MAX + 1]; /* lower case; "" matches nothing */
	char name[NEAREST_MAX + 1]; /* the nearest so far; "" while none is near enough */
	char hint[NEAREST_MAX + 24];
	int size;  /* of word */
	int limit; /* edits that a better name may take; negative: the search has ended */
	uint32_t tries;
	uint64_t end; /* of the search, in ns of the thread's CPU time */
};

void nearest_start(struct nearest *n, const char *word);
/* Compares one more name, which need not be terminated; case does not matter. Returns true if it
 * is nearer than those before it. A name is too far away if a third of the word would have to
 * change. */
bool nearest_try(struct nearest *n, const char *name, size_t size);
/* The end of a message: "; did you mean 'NAME'?", or "" without a name. Lives as long as n. */
const char *nearest_hint(struct nearest *n);
