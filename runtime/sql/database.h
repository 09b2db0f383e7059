/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A database of SQLite, and queries on it. Queries come from the user and only read: statements
 * that change anything, open files or set pragmas are refused. They end when the run is asked to
 * end, and when they need too much memory.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct database;
struct error;
struct functions;
struct query;
struct tables;

/* path: created if it does not exist; NULL: in memory, or in a temporary file that has no name.
 * tables and functions must outlive the database. Returns NULL with a message. */
struct database *database_open(const char *path, bool in_memory, struct tables *tables,
			       struct functions *functions, struct error *err);
/* Finishes the transaction and closes the file. All queries must have been freed. */
int database_close(struct database *db, struct error *err);
/* Runs statements of our own, which may do everything. Requests to end the run do not end them. */
int database_exec(struct database *db, const char *sql, struct error *err);

/* Why a query is refused or failed. */
struct query_error {
	char text[512];	  /* SQLite's message */
	int offset;	  /* byte in the text where the error is; -1: unknown */
	bool interrupted; /* the user asked the run to end */
	char denied[32];  /* what the query may not do: "ATTACH"; "": it may */
};

/* Prepares the first statement of the text, and sets *length to its bytes. Returns NULL with an
 * error; or without one, its text being "", if there is no statement, only blanks or comments. */
struct query *query_new(struct database *db, const char *sql, int *length, struct query_error *err);
void query_free(struct query *q);
int query_columns(const struct query *q);
const char *query_name(const struct query *q, int column);

enum value_type { VALUE_INTEGER = 1, VALUE_REAL, VALUE_TEXT, VALUE_BLOB, VALUE_NULL };

struct value {
	int64_t integer;
	double real;
	const char *text; /* of VALUE_TEXT and VALUE_BLOB */
	int32_t size;
	int32_t type; /* enum value_type */
};

/* The table and the column whose values a column of the result has. Returns false if it is
 * computed. */
bool query_origin(const struct query *q, int column, const char **table, const char **name);
/* Steps to the next row. Returns 1; 0 after the last one; negative: failure. The query can then be
 * run again. */
int query_step(struct query *q, struct query_error *err);
/* Reads a value of the current row. Its text lives until the next step. */
void query_read(const struct query *q, int column, struct value *out);
