/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Comparisons of a column with a value of a query, which are made for each row of a table of events
 * instead of in SQLite.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "sql/columns.h"

struct sqlite3_value;

struct comparison {
	const struct column *column;
	uint8_t op; /* SQLITE_INDEX_CONSTRAINT_* */
	int64_t value;
	struct span text;
};

enum comparison_use {
	COMPARISON_KEPT,
	COMPARISON_USELESS, /* its value cannot be compared here: SQLite does it */
	COMPARISON_NEVER,   /* no row can pass it */
	COMPARISON_NO_MEMORY
};

/* Sets the value of a comparison whose column and operator are set. *copy: the copy of a text, as
 * SQLite's values do not last, to be freed with sqlite3_free(). */
enum comparison_use comparison_read(struct comparison *test, struct sqlite3_value *value,
				    char **copy);
/* Returns whether an event passes. NULL never does. */
bool comparison_holds(const struct comparison *test, const struct event *ev);
