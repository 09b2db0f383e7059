/* SPDX-License-Identifier: GPL-2.0-only */
#include "sql/percentiles.h"

#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_VALUES = 64 };

/* The state of a group, zeroed by SQLite. */
struct group {
	double *values;
	uint64_t n, size;
	double share; /* 0 to 1 */
	bool is_wrong;
};

static void fail(struct group *g, sqlite3_context *result, const char *message)
{
	g->is_wrong = true;
	sqlite3_result_error(result, message, -1);
}

static int grow(struct group *g)
{
	uint64_t size = g->size ? 2 * g->size : MIN_VALUES;
	double *values = sqlite3_realloc64(g->values, size * sizeof(*values));

	if (!values)
		return -1;
	g->values = values;
	g->size = size;
	return 0;
}

/* most: what stands for the largest value; the function's user data. */
static void add_value(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	struct group *g = sqlite3_aggregate_context(result, sizeof(*g));
	const double *most = sqlite3_user_data(result);
	double share = argc > 1 ? sqlite3_value_double(argv[1]) / *most : 0.5;
	int type = sqlite3_value_numeric_type(argv[0]);

	if (!g || g->is_wrong)
		return;
	if (!(share >= 0 && share <= 1) ||
	    (argc > 1 && sqlite3_value_numeric_type(argv[1]) == SQLITE_TEXT)) {
		fail(g, result,
		     *most == 1 ? "quantile(): the second argument is from 0 to 1"
				: "percentile(): the second argument is from 0 to 100");
		return;
	}
	if (g->n && share != g->share) {
		fail(g, result, "the second argument must be the same for all rows of a group");
		return;
	}
	g->share = share;
	if (type == SQLITE_NULL)
		return;
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
		fail(g, result, "percentiles need numbers");
		return;
	}
	if (g->n == g->size && grow(g)) {
		g->is_wrong = true;
		sqlite3_result_error_nomem(result);
		return;
	}
	g->values[g->n++] = sqlite3_value_double(argv[0]);
}

static void swap(double *a, double *b)
{
	double t = *a;

	*a = *b;
	*b = t;
}

/* Moves the value of this rank to its place, and lesser ones before it (Hoare's quickselect). */
static double select_rank(double *v, uint64_t n, uint64_t rank)
{
	uint64_t low = 0, high = n - 1;

	while (low < high) {
		uint64_t i = low, j = high;
		double pivot = v[low + (high - low) / 2];

		for (;;) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			swap(&v[i++], &v[j--]);
		}
		if (rank <= j)
			high = j;
		else
			low = j + 1;
	}
	return v[rank];
}

static void finish(sqlite3_context *result)
{
	struct group *g = sqlite3_aggregate_context(result, 0);
	double place, at, next;
	uint64_t rank;

	if (!g)
		return;
	if (g->n && !g->is_wrong) {
		place = g->share * (double)(g->n - 1);
		rank = (uint64_t)place;
		at = select_rank(g->values, g->n, rank);
		if (place > (double)rank) {
			next = INFINITY;
			for (uint64_t i = rank + 1; i < g->n; i++)
				next = g->values[i] < next ? g->values[i] : next;
			at += (next - at) * (place - (double)rank);
		}
		sqlite3_result_double(result, at);
	}
	sqlite3_free(g->values);
	g->values = NULL;
}

int percentiles_register(sqlite3 *db)
{
	static const double one = 1, hundred = 100;
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int status = sqlite3_create_function_v2(db, "percentile", 2, flags, (void *)&hundred, NULL,
						add_value, finish, NULL);

	if (!status)
		status = sqlite3_create_function_v2(db, "quantile", 2, flags, (void *)&one, NULL,
						    add_value, finish, NULL);
	if (!status)
		status = sqlite3_create_function_v2(db, "median", 1, flags, (void *)&one, NULL,
						    add_value, finish, NULL);
	return status;
}
