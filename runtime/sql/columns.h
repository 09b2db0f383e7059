/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The columns of tables of events: how the value of a row is read from the event, and indexes that
 * sort the rows of a table by a column.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct event;
struct index;
struct tasks;

enum column_kind {
	COLUMN_PID,
	COLUMN_TID,
	COLUMN_TIME, /* the clock of the events, in ns */
	COLUMN_CPU,
	COLUMN_PERIOD,
	COLUMN_MACHINE, /* member of a join */
	COLUMN_COMM,	/* the name of the thread at the event's time */
	COLUMN_FIELD	/* of the payload */
};

enum column_type { COLUMN_INTEGER, COLUMN_TEXT, COLUMN_BLOB };

struct column {
	char *name;
	uint32_t kind;	       /* enum column_kind */
	uint32_t type;	       /* enum column_type */
	uint32_t offset, size; /* of a field */
	uint32_t flags;	       /* of a field: enum field_flags */
	uint32_t has_index;    /* the user asked for an index */
	uint64_t base;	       /* of COLUMN_TIME: added to the event's time */
	struct tasks *tasks;   /* of COLUMN_COMM */
};

struct span {
	const char *at;
	uint32_t size;
};

/* Reads an integer. Unsigned numbers of 2^63 and more become negative. Returns false if the payload
 * is too short for it: the value is NULL. */
bool column_integer(const struct column *c, const struct event *ev, int64_t *value);
/* Reads a text without its NUL, or the bytes of an array. They live as long as the event, the name
 * of a task until the next record. */
bool column_span(const struct column *c, const struct event *ev, struct span *value);
/* As memcmp(), and then by length: the order of SQLite. */
int span_compare(struct span a, struct span b);

/* Sorts n rows by a column that is not of the type BLOB; equal ones stay in their order, and those
 * that are NULL come first. Returns NULL without memory. */
struct index *index_new(const struct column *c, struct event *const *rows, uint32_t n);
void index_free(struct index *x);
/* The numbers of the rows in the order of the index. */
const uint32_t *index_order(const struct index *x);
/* Reads the value at a place of that order without its event. Returns false if it is NULL. */
bool index_integer(const struct index *x, uint32_t place, int64_t *value);
bool index_text(const struct index *x, uint32_t place, struct span *value);
/* Returns how many rows are NULL. */
uint32_t index_nulls(const struct index *x);
/* Returns how many rows are NULL or less than the value, or with or_equal also equal. */
uint32_t index_below(const struct index *x, int64_t value, bool or_equal);
uint32_t index_below_text(const struct index *x, struct span value, bool or_equal);
