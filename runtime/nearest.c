/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Edit distance with transpositions (optimal string alignment). Only the cells of the matrix that
 * can stay within the limit are computed. A name costs up to some µs.
 */
#include "nearest.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	MAX_TIME = 50000000, /* ns of a search */
	CHECK_EVERY = 256    /* names */
};

static int min2(int a, int b)
{
	return a < b ? a : b;
}

static int max2(int a, int b)
{
	return a > b ? a : b;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* The distance between two words in lower case, or some number above limit. */
static int distance(const char *a, int a_len, const char *b, int b_len, int limit)
{
	unsigned char rows[3][NEAREST_MAX + 1];
	unsigned char *before = rows[0], *last = rows[1], *row = rows[2];

	for (int j = 0; j <= b_len; j++)
		last[j] = j;
	for (int i = 1; i <= a_len; i++) {
		int from = max2(1, i - limit), to = min2(b_len, i + limit), least;
		unsigned char *spare = before;

		least = row[from - 1] = from == 1 ? i : limit + 1;
		for (int j = from; j <= to; j++) {
			int change = a[i - 1] != b[j - 1];
			int best = min2(last[j - 1] + change, min2(last[j], row[j - 1]) + 1);

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = min2(best, before[j - 2] + 1);
			row[j] = best;
			least = min2(least, best);
		}
		if (least > limit)
			return least;
		if (to < b_len)
			row[to + 1] = limit + 1; /* read by the next row */
		before = last;
		last = row;
		row = spare;
	}
	return last[b_len];
}

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void nearest_start(struct nearest *n, const char *word)
{
	size_t size = strlen(word);

	memset(n, 0, sizeof(*n));
	if (!size || size > NEAREST_MAX) {
		n->limit = -1;
		return;
	}
	for (size_t i = 0; i < size; i++)
		n->word[i] = lower(word[i]);
	n->size = (int)size;
	n->limit = max2(n->size / 3, 1);
	n->end = cpu_time() + MAX_TIME;
}

bool nearest_try(struct nearest *n, const char *name, size_t size)
{
	char text[NEAREST_MAX];
	int len = (int)size, edits;

	if (n->limit < 0 || !size || size > NEAREST_MAX || len > n->size + n->limit ||
	    len < n->size - n->limit)
		return false;
	if (++n->tries % CHECK_EVERY == 0 && cpu_time() > n->end) {
		n->limit = -1;
		return false;
	}
	for (int i = 0; i < len; i++)
		text[i] = lower(name[i]);
	edits = distance(n->word, n->size, text, len, n->limit);
	if (edits > n->limit)
		return false;
	n->limit = edits - 1;
	memcpy(n->name, name, size);
	n->name[size] = '\0';
	return true;
}

const char *nearest_hint(struct nearest *n)
{
	n->hint[0] = '\0';
	if (n->name[0])
		snprintf(n->hint, sizeof(n->hint), "; did you mean '%s'?", n->name);
	return n->hint;
}
