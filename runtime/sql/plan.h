/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a query reads a table of events: which comparisons of columns with values are made here
 * instead of in SQLite, and the column whose index finds or sorts the rows.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "sql/tables.h"

struct column;
struct sqlite3_index_info;

enum { PLAN_TESTS = 16, PLAN_CONSTANTS = 8 };

struct plan_test {
	uint16_t column;
	uint16_t op; /* SQLITE_INDEX_CONSTRAINT_* */
};

struct plan {
	uint32_t table;
	uint32_t nr_constants;
	struct tables_constant constants[PLAN_CONSTANTS]; /* of comparisons that all rows pass */
	struct plan_test tests[PLAN_TESTS];		  /* in the order of xFilter's values */
	uint32_t nr_tests;
	int32_t index;	   /* column whose index finds or sorts the rows; -1: none */
	bool is_sorted;	   /* the rows must be in the order of the index */
	bool is_down;	   /* from the last row to the first one */
	bool reads_events; /* the index is not enough, as other columns are read */
};

/* Makes the plan of a query, and tells SQLite what it costs (xBestIndex). Plans of the same content
 * have the same bytes. rows: of the table. */
void plan_choose(struct plan *out, uint32_t table, const struct column *columns, uint32_t rows,
		 struct sqlite3_index_info *info);
/* Returns the plan as EXPLAIN QUERY PLAN shows it, to be freed with sqlite3_free(); NULL without
 * memory. */
char *plan_text(const struct plan *plan, const struct column *columns);
