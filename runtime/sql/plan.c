/* SPDX-License-Identifier: GPL-2.0-only */
#include "sql/plan.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include "sql/columns.h"

enum { ASSUMED_ROWS = 1000000 };

/* What a plan is made from. */
struct choice {
	struct plan *plan;
	const struct column *columns;
	bool is_equal;	       /* the column of the index is compared with = */
	bool has_times;	       /* a range of times */
	bool has_from, has_to; /* its ends */
};

static const char *op_text(int op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return "=";
	case SQLITE_INDEX_CONSTRAINT_NE:
		return "<>";
	case SQLITE_INDEX_CONSTRAINT_GT:
		return ">";
	case SQLITE_INDEX_CONSTRAINT_GE:
		return ">=";
	case SQLITE_INDEX_CONSTRAINT_LT:
		return "<";
	case SQLITE_INDEX_CONSTRAINT_LE:
		return "<=";
	default:
		return NULL;
	}
}

/* Returns whether a constraint can be tested here. */
static bool can_test(sqlite3_index_info *info, int i, const struct column *columns)
{
	const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
	const struct column *column;

	if (!constraint->usable || constraint->iColumn < 0 || !op_text(constraint->op))
		return false;
	column = &columns[constraint->iColumn];
	if (column->type == COLUMN_BLOB)
		return false;
	if (column->type == COLUMN_TEXT && strcmp(sqlite3_vtab_collation(info, i), "BINARY"))
		return false;
	/* IN is a loop of = unless it is left to SQLite, which pays only with an index. */
	return column->has_index || !sqlite3_vtab_in(info, i, -1);
}

static void add_test(struct choice *choice, sqlite3_index_info *info, int i)
{
	const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
	const struct column *column = &choice->columns[constraint->iColumn];
	bool is_equal = constraint->op == SQLITE_INDEX_CONSTRAINT_EQ;
	struct plan *plan = choice->plan;

	plan->tests[plan->nr_tests].column = constraint->iColumn;
	plan->tests[plan->nr_tests].op = constraint->op;
	info->aConstraintUsage[i].argvIndex = ++plan->nr_tests;
	if (column->kind == COLUMN_TIME) {
		choice->has_times |= constraint->op != SQLITE_INDEX_CONSTRAINT_NE;
		choice->has_from |= constraint->op == SQLITE_INDEX_CONSTRAINT_GT ||
				    constraint->op == SQLITE_INDEX_CONSTRAINT_GE;
		choice->has_to |= constraint->op == SQLITE_INDEX_CONSTRAINT_LT ||
				  constraint->op == SQLITE_INDEX_CONSTRAINT_LE;
	} else if (is_equal && (plan->index < 0 || !choice->is_equal || column->has_index)) {
		plan->index = constraint->iColumn;
		choice->is_equal = true;
	} else if (plan->index < 0 && column->has_index &&
		   constraint->op != SQLITE_INDEX_CONSTRAINT_NE)
		plan->index = constraint->iColumn;
}

/* Returns the column that is to sort the rows, or -1. */
static int sort_column(const struct choice *choice, sqlite3_index_info *info)
{
	const struct sqlite3_index_orderby *by = info->aOrderBy;
	const struct column *column;
	bool groups = sqlite3_vtab_distinct(info);

	if (info->nOrderBy != 1)
		return -1;
	/* Row numbers and times are in the order of the rows. */
	if (by->iColumn < 0 || choice->columns[by->iColumn].kind == COLUMN_TIME) {
		info->orderByConsumed = choice->plan->index < 0 || choice->is_equal;
		return -1;
	}
	column = &choice->columns[by->iColumn];
	if (column->type == COLUMN_BLOB || (!column->has_index && !groups))
		return -1;
	/* To sort all rows is a waste if few of them are needed. */
	if (!column->has_index && (choice->is_equal || choice->has_times))
		return -1;
	if (choice->is_equal && choice->plan->index != by->iColumn)
		return -1;
	info->orderByConsumed = 1;
	return by->iColumn;
}

/* Whether a query reads no other column than this one. */
static bool needs_only(const sqlite3_index_info *info, int column)
{
	/* The last bit of colUsed stands for all columns from 63 on. */
	return column >= 0 && column < 63 && !(info->colUsed & ~(1ull << column));
}

static void set_costs(const struct choice *choice, double rows, sqlite3_index_info *info)
{
	bool is_narrow = choice->is_equal || choice->has_times;

	rows = rows > 0 ? rows : ASSUMED_ROWS;
	if (choice->is_equal)
		rows = 10 + rows / 1000;
	/* Less than both sides of an OR with =, for which SQLite forgets a BETWEEN beside it. */
	else if (choice->has_from && choice->has_to)
		rows = 10 + rows / 10000;
	else if (choice->has_times || choice->plan->index >= 0)
		rows = 10 + rows / 20;
	info->estimatedCost = (is_narrow ? rows : rows * 2) + (choice->plan->nr_tests ? 0 : rows);
	info->estimatedRows = choice->plan->nr_tests ? 1 + rows / 2 : rows;
}

/* Reads the value that a column is compared with. Returns false if it has another type, or is not
 * known before the query runs. */
static bool read_constant(sqlite3_index_info *info, int i, const struct column *column,
			  struct tables_constant *out)
{
	sqlite3_value *value = NULL;

	if (sqlite3_vtab_in(info, i, -1) || sqlite3_vtab_rhs_value(info, i, &value) != SQLITE_OK ||
	    !value)
		return false;
	if (column->type == COLUMN_INTEGER && sqlite3_value_type(value) == SQLITE_INTEGER) {
		out->integer = sqlite3_value_int64(value);
		return true;
	}
	if (column->type != COLUMN_TEXT || sqlite3_value_type(value) != SQLITE_TEXT ||
	    (size_t)sqlite3_value_bytes(value) >= sizeof(out->text))
		return false;
	memcpy(out->text, sqlite3_value_text(value), sqlite3_value_bytes(value));
	return true;
}

/* Notes the comparisons with constants, which the rows of this plan all pass. */
static void note_constants(struct plan *plan, const struct column *columns,
			   sqlite3_index_info *info)
{
	for (int i = 0; i < info->nConstraint && plan->nr_constants < PLAN_CONSTANTS; i++) {
		const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
		struct tables_constant *one = &plan->constants[plan->nr_constants];

		if (!can_test(info, i, columns))
			continue;
		one->column = constraint->iColumn;
		snprintf(one->op, sizeof(one->op), "%s", op_text(constraint->op));
		if (read_constant(info, i, &columns[constraint->iColumn], one))
			plan->nr_constants++;
		else
			memset(one, 0, sizeof(*one));
	}
}

void plan_choose(struct plan *out, uint32_t table, const struct column *columns, uint32_t rows,
		 sqlite3_index_info *info)
{
	struct choice choice = {.plan = out, .columns = columns};
	int sorted;

	memset(out, 0, sizeof(*out)); /* with the padding, as plans are compared as bytes */
	out->table = table;
	out->index = -1;
	for (int i = 0; i < info->nConstraint && out->nr_tests < PLAN_TESTS; i++)
		if (can_test(info, i, columns))
			add_test(&choice, info, i);
	note_constants(out, columns, info);
	sorted = sort_column(&choice, info);
	set_costs(&choice, rows, info);
	out->is_sorted = sorted >= 0;
	if (out->is_sorted)
		out->index = sorted;
	out->is_down = info->orderByConsumed && info->aOrderBy[0].desc;
	out->reads_events = !needs_only(info, sorted);
}

char *plan_text(const struct plan *plan, const struct column *columns)
{
	sqlite3_str *text = sqlite3_str_new(NULL);

	if (!plan->nr_tests)
		sqlite3_str_appendall(text, "all rows");
	for (uint32_t i = 0; i < plan->nr_tests; i++)
		sqlite3_str_appendf(text, "%s%s %s ?", i ? " AND " : "",
				    columns[plan->tests[i].column].name,
				    op_text(plan->tests[i].op));
	if (plan->index >= 0)
		sqlite3_str_appendf(text, plan->is_sorted ? ", sorted by %s" : ", index of %s",
				    columns[plan->index].name);
	if (plan->is_down)
		sqlite3_str_appendall(text, ", backward");
	return sqlite3_str_finish(text);
}
