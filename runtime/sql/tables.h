/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of events for SQLite: a virtual table for each class of kept events (rows.h). No row is
 * copied; a column is read when a query needs it. Comparisons of integers and texts with values,
 * ranges of times, and sorting by one column are done here instead of in SQLite.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct column;
struct error;
struct rows;
struct tables;
struct sqlite3;

/* A comparison of a column with a constant. */
struct tables_constant {
	uint32_t column;
	char op[4]; /* in SQL */
	int64_t integer;
	char text[32]; /* of a text */
};

/* rows must outlive the tables. Returns NULL without memory. */
struct tables *tables_new(struct rows *rows);
void tables_free(struct tables *t);
/* Adds the table of a class. Returns its number, or a negative errno. */
int tables_add(struct tables *t, uint16_t class);
/* Adds a column to a table; its name is copied. */
int tables_add_column(struct tables *t, uint32_t table, const struct column *column);
/* The time of the events' clock at their base, in ns. */
void tables_set_base(struct tables *t, uint64_t base);
/* Returns the table that is read by a plan, whose number EXPLAIN QUERY PLAN shows; -1 for no plan.
 */
int tables_of_plan(const struct tables *t, uint32_t plan);
/* Reads the comparison number i, from 0, that all rows of a plan pass. A query has the same result
 * if its tables lack the rows that none of its plans reads. Returns false if there are no more. */
bool tables_constant(const struct tables *t, uint32_t plan, uint32_t i,
		     struct tables_constant *out);
/* Drops the indexes. Must be called before the rows change. */
void tables_forget(struct tables *t);
/* Registers the module "events": CREATE VIRTUAL TABLE name USING events(NUMBER). */
int tables_register(struct tables *t, struct sqlite3 *db, struct error *err);
