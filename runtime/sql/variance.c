/* SPDX-License-Identifier: GPL-2.0-only */
#include "sql/variance.h"

#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of a group, zeroed by SQLite. */
struct group {
	uint64_t n;
	double first; /* the first value; others count from there, which keeps large ones exact */
	double mean, squares; /* squares: the sum of the squared distances from the mean */
	bool is_wrong;
};

/* Welford's method. */
static void add_value(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	struct group *g = sqlite3_aggregate_context(result, sizeof(*g));
	int type = sqlite3_value_numeric_type(argv[0]);
	double value, before;

	(void)argc;
	if (!g || g->is_wrong || type == SQLITE_NULL)
		return;
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
		g->is_wrong = true;
		sqlite3_result_error(result, "variance() and stddev() need numbers", -1);
		return;
	}
	value = sqlite3_value_double(argv[0]);
	if (!g->n++)
		g->first = value;
	value -= g->first;
	before = value - g->mean;
	g->mean += before / (double)g->n;
	g->squares += before * (value - g->mean);
}

/* The function's user data: whether the result is the root. */
static void finish(sqlite3_context *result)
{
	struct group *g = sqlite3_aggregate_context(result, 0);
	const bool *is_root = sqlite3_user_data(result);
	double variance;

	if (!g || !g->n || g->is_wrong)
		return;
	variance = g->squares / (double)g->n;
	sqlite3_result_double(result, *is_root ? sqrt(variance) : variance);
}

int variance_register(sqlite3 *db)
{
	static const bool no, yes = true;
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int status = sqlite3_create_function_v2(db, "variance", 1, flags, (void *)&no, NULL,
						add_value, finish, NULL);

	if (!status)
		status = sqlite3_create_function_v2(db, "stddev", 1, flags, (void *)&yes, NULL,
						    add_value, finish, NULL);
	return status;
}
