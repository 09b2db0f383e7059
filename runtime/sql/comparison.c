/* SPDX-License-Identifier: GPL-2.0-only */
#include "sql/comparison.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

/* Makes the comparison of an integer with a real number one with an integer. */
static enum comparison_use real_test(struct comparison *test, double value)
{
	double whole = floor(value);
	bool is_low = value < -0x1p63, is_high = value >= 0x1p63;

	switch (test->op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		if (is_low || is_high || whole != value)
			return COMPARISON_NEVER;
		break;
	case SQLITE_INDEX_CONSTRAINT_NE:
		if (is_low || is_high || whole != value)
			return COMPARISON_USELESS;
		break;
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		if (is_high || is_low)
			return is_high ? COMPARISON_NEVER : COMPARISON_USELESS;
		if (whole != value)
			test->op = SQLITE_INDEX_CONSTRAINT_GT;
		break;
	default:
		if (is_high || is_low)
			return is_low ? COMPARISON_NEVER : COMPARISON_USELESS;
		if (whole != value)
			test->op = SQLITE_INDEX_CONSTRAINT_LE;
	}
	test->value = (int64_t)whole;
	return COMPARISON_KEPT;
}

enum comparison_use comparison_read(struct comparison *test, sqlite3_value *value, char **copy)
{
	int type = sqlite3_value_type(value);

	if (type == SQLITE_NULL)
		return COMPARISON_NEVER;
	if (test->column->type == COLUMN_INTEGER) {
		if (type == SQLITE_FLOAT)
			return real_test(test, sqlite3_value_double(value));
		test->value = sqlite3_value_int64(value);
		return type == SQLITE_INTEGER ? COMPARISON_KEPT : COMPARISON_USELESS;
	}
	if (type != SQLITE_TEXT)
		return COMPARISON_USELESS;
	test->text.at = (const char *)sqlite3_value_text(value);
	test->text.size = sqlite3_value_bytes(value);
	if (!test->text.at)
		return COMPARISON_NO_MEMORY;
	*copy = sqlite3_malloc64(test->text.size + 1);
	if (!*copy)
		return COMPARISON_NO_MEMORY;
	test->text.at = memcpy(*copy, test->text.at, test->text.size);
	return COMPARISON_KEPT;
}

static bool holds(int order, uint8_t op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return order == 0;
	case SQLITE_INDEX_CONSTRAINT_NE:
		return order != 0;
	case SQLITE_INDEX_CONSTRAINT_GT:
		return order > 0;
	case SQLITE_INDEX_CONSTRAINT_GE:
		return order >= 0;
	case SQLITE_INDEX_CONSTRAINT_LT:
		return order < 0;
	default:
		return order <= 0;
	}
}

bool comparison_holds(const struct comparison *test, const struct event *ev)
{
	struct span text;
	int64_t value;

	if (test->column->type == COLUMN_TEXT)
		return column_span(test->column, ev, &text) &&
		       holds(span_compare(text, test->text), test->op);
	return column_integer(test->column, ev, &value) &&
	       holds((value > test->value) - (value < test->value), test->op);
}
