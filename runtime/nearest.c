/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Edit distance with transpositions (optimal string alignment), bounded: a name is a candidate
 * when at most one of three characters has to change. Words longer than WORD_MAX are not compared.
 */
#include "nearest.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 127 };

static size_t min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t change = a[i - 1] != b[j - 1];
			size_t best = min2(last[j - 1] + change, min2(last[j], row[j - 1]) + 1);

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = min2(best, before[j - 2] + 1);
			row[j] = best;
		}
		size_t *spare = before;

		before = last;
		last = row;
		row = spare;
	}
	return last[b_len];
}

size_t nearest_name(const char *names, const char *want, char *out, size_t size)
{
	size_t want_len = strlen(want);
	size_t limit = want_len < 3 ? 1 : want_len / 3;
	const char *found = NULL;
	size_t found_len = 0;

	if (size)
		out[0] = '\0';
	if (want_len == 0 || want_len > WORD_MAX)
		return 0;
	for (const char *name = names; *name;) {
		size_t len = strcspn(name, "\n");
		size_t apart = len > want_len ? len - want_len : want_len - len;

		if (len && len <= WORD_MAX && apart <= limit) {
			size_t d = distance(name, len, want, want_len);

			/* A later name must be strictly nearer. */
			if (d < limit || (d == limit && !found)) {
				limit = d;
				found = name;
				found_len = len;
			}
		}
		name += len + (name[len] == '\n');
	}
	if (!found || found_len >= size)
		return 0;
	memcpy(out, found, found_len);
	out[found_len] = '\0';
	return found_len;
}
