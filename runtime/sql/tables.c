/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SQLite repeats all tests on the rows that it gets, so a test whose value cannot be compared here
 * is left out.
 *
 * An index costs about as much as ten scans. It is made when the rows are sorted by it, when the
 * user asked for it, or when a query looks for a value the third time, as the inner loop of a join
 * does.
 */
#include "sql/tables.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "event.h"
#include "sql/columns.h"
#include "sql/comparison.h"
#include "sql/plan.h"
#include "sql/rows.h"

enum {
	MAX_COLUMNS = 1999,
	SCANS = 2, /* by the same cursor, before it makes an index */
	AHEAD = 16 /* rows that are prefetched: in the order of an index, each is somewhere else */
};

struct table {
	struct column *columns;
	uint32_t nr_columns;
	struct index **indexes; /* by column; NULL: not made */
};

struct tables {
	struct rows *rows;
	struct table *list;
	uint32_t n;
	struct plan *plans; /* by idxNum: those of all queries so far */
	uint32_t nr_plans;
};

struct vtab {
	sqlite3_vtab base;
	struct tables *tables;
	uint32_t number;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct event *const *rows;
	const uint32_t *order; /* of the index; NULL: the order of time */
	const struct index *index;
	const struct column *sorted; /* column of the index */
	uint32_t place;		     /* of the current row in the order */
	uint32_t at, end;	     /* of the order, or of the rows */
	uint32_t low, high;	     /* the rows within the range of times */
	bool down;		     /* from end to at */
	bool reads_events;	     /* not only the index */
	uint32_t row;		     /* the current one */
	bool is_over;
	uint32_t filters;
	uint32_t nr_tests;
	struct comparison tests[PLAN_TESTS];
	char *texts[PLAN_TESTS]; /* copies, as the values of a plan do not last */
};

struct tables *tables_new(struct rows *rows)
{
	struct tables *t = calloc(1, sizeof(*t));

	if (t)
		t->rows = rows;
	return t;
}

void tables_forget(struct tables *t)
{
	for (struct table *table = t->list; table < t->list + t->n; table++) {
		for (uint32_t i = 0; i < table->nr_columns; i++) {
			index_free(table->indexes[i]);
			table->indexes[i] = NULL;
		}
	}
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	tables_forget(t);
	for (struct table *table = t->list; table < t->list + t->n; table++) {
		for (uint32_t i = 0; i < table->nr_columns; i++)
			free(table->columns[i].name);
		free(table->columns);
		free(table->indexes);
	}
	free(t->list);
	free(t->plans);
	free(t);
}

int tables_add(struct tables *t, uint16_t class)
{
	struct table *list = reallocarray(t->list, t->n + 1, sizeof(*list));
	int number;

	if (!list)
		return -ENOMEM;
	t->list = list;
	number = rows_add_table(t->rows, class);
	if (number < 0)
		return number;
	t->list[t->n++] = (struct table){0};
	return number;
}

int tables_add_column(struct tables *t, uint32_t table, const struct column *column)
{
	struct table *to = &t->list[table];
	struct column *columns;
	struct index **indexes;

	if (to->nr_columns == MAX_COLUMNS)
		return -E2BIG;
	columns = reallocarray(to->columns, to->nr_columns + 1, sizeof(*columns));
	if (!columns)
		return -ENOMEM;
	to->columns = columns;
	indexes = reallocarray(to->indexes, to->nr_columns + 1, sizeof(struct index *));
	if (!indexes)
		return -ENOMEM;
	to->indexes = indexes;
	columns[to->nr_columns] = *column;
	columns[to->nr_columns].name = strdup(column->name);
	if (!columns[to->nr_columns].name)
		return -ENOMEM;
	indexes[to->nr_columns++] = NULL;
	return 0;
}

void tables_set_base(struct tables *t, uint64_t base)
{
	for (struct table *table = t->list; table < t->list + t->n; table++)
		for (uint32_t i = 0; i < table->nr_columns; i++)
			table->columns[i].base = base;
}

static const char *const TYPES[] = {"INTEGER", "TEXT", "BLOB"};

static int declare(sqlite3 *db, const struct table *table)
{
	sqlite3_str *text = sqlite3_str_new(db);
	char *sql;
	int status;

	sqlite3_str_appendall(text, "CREATE TABLE t(");
	for (uint32_t i = 0; i < table->nr_columns; i++)
		sqlite3_str_appendf(text, "%s\"%w\" %s", i ? "," : "", table->columns[i].name,
				    TYPES[table->columns[i].type]);
	sqlite3_str_appendall(text, ")");
	sql = sqlite3_str_finish(text);
	if (!sql)
		return SQLITE_NOMEM;
	status = sqlite3_declare_vtab(db, sql);
	sqlite3_free(sql);
	return status;
}

static int vtab_connect(sqlite3 *db, void *arg, int argc, const char *const *argv,
			sqlite3_vtab **out, char **message)
{
	struct tables *t = arg;
	uint32_t number = argc > 3 ? strtoul(argv[3], NULL, 10) : UINT32_MAX;
	struct vtab *vtab;
	int status;

	if (number >= t->n) {
		*message = sqlite3_mprintf("there is no table of events %u", number);
		return SQLITE_ERROR;
	}
	status = declare(db, &t->list[number]);
	if (status != SQLITE_OK)
		return status;
	vtab = sqlite3_malloc(sizeof(*vtab));
	if (!vtab)
		return SQLITE_NOMEM;
	*vtab = (struct vtab){.tables = t, .number = number};
	*out = &vtab->base;
	return SQLITE_OK;
}

static int vtab_disconnect(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

/* Returns the number of a plan; -1 without memory. */
static int keep_plan(struct tables *t, const struct plan *plan)
{
	struct plan *plans;

	for (uint32_t i = 0; i < t->nr_plans; i++)
		if (!memcmp(&t->plans[i], plan, sizeof(*plan)))
			return (int)i;
	plans = reallocarray(t->plans, t->nr_plans + 1, sizeof(*plans));
	if (!plans)
		return -1;
	t->plans = plans;
	plans[t->nr_plans] = *plan;
	return (int)t->nr_plans++;
}

int tables_of_plan(const struct tables *t, uint32_t plan)
{
	return plan < t->nr_plans ? (int)t->plans[plan].table : -1;
}

bool tables_constant(const struct tables *t, uint32_t plan, uint32_t i, struct tables_constant *out)
{
	const struct plan *of = &t->plans[plan];

	if (i >= of->nr_constants)
		return false;
	*out = of->constants[i];
	return true;
}

static int vtab_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct vtab *vtab = (struct vtab *)base;
	struct table *table = &vtab->tables->list[vtab->number];
	struct plan plan;

	plan_choose(&plan, vtab->number, table->columns,
		    rows_count(vtab->tables->rows, vtab->number), info);
	info->idxNum = keep_plan(vtab->tables, &plan);
	info->idxStr = plan_text(&plan, table->columns);
	info->needToFreeIdxStr = 1;
	return info->idxNum < 0 || !info->idxStr ? SQLITE_NOMEM : SQLITE_OK;
}

static int vtab_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	struct cursor *c = sqlite3_malloc(sizeof(*c));

	(void)base;
	if (!c)
		return SQLITE_NOMEM;
	memset(c, 0, sizeof(*c));
	*out = &c->base;
	return SQLITE_OK;
}

static void free_tests(struct cursor *c)
{
	for (uint32_t i = 0; i < PLAN_TESTS; i++) {
		sqlite3_free(c->texts[i]);
		c->texts[i] = NULL;
	}
	c->nr_tests = 0;
}

static int vtab_close(sqlite3_vtab_cursor *base)
{
	free_tests((struct cursor *)base);
	sqlite3_free(base);
	return SQLITE_OK;
}

/* Narrows the range of rows by a test of the time. */
static void narrow_times(struct cursor *c, struct rows *rows, uint32_t table,
			 const struct comparison *test)
{
	uint64_t base = test->column->base;
	double time = (double)(int64_t)((uint64_t)test->value - base);
	uint32_t from, after;

	/* Far from the base, the difference may wrap around. */
	if (test->value < 0)
		time = -INFINITY;
	from = rows_before(rows, table, time);
	after = rows_before(rows, table, nextafter(time, INFINITY));
	if (test->op == SQLITE_INDEX_CONSTRAINT_GT)
		from = after;
	if (test->op != SQLITE_INDEX_CONSTRAINT_LT && test->op != SQLITE_INDEX_CONSTRAINT_LE &&
	    from > c->low)
		c->low = from;
	if (test->op == SQLITE_INDEX_CONSTRAINT_LT)
		after = from;
	if (test->op != SQLITE_INDEX_CONSTRAINT_GT && test->op != SQLITE_INDEX_CONSTRAINT_GE &&
	    after < c->high)
		c->high = after;
}

/* Reads the tests of a plan with their values. */
static enum comparison_use read_tests(struct cursor *c, const struct vtab *vtab,
				      const struct plan *plan, sqlite3_value **argv)
{
	struct tables *t = vtab->tables;

	free_tests(c);
	for (uint32_t i = 0; i < plan->nr_tests; i++) {
		const struct plan_test *one = &plan->tests[i];
		struct comparison *test = &c->tests[c->nr_tests];
		enum comparison_use outcome;

		*test = (struct comparison){
			&t->list[vtab->number].columns[one->column], one->op, 0, {0}};
		outcome = comparison_read(test, argv[i], &c->texts[c->nr_tests]);
		if (outcome == COMPARISON_NEVER || outcome == COMPARISON_NO_MEMORY)
			return outcome;
		if (outcome == COMPARISON_USELESS)
			continue;
		if (test->column->kind == COLUMN_TIME && test->op != SQLITE_INDEX_CONSTRAINT_NE)
			narrow_times(c, t->rows, vtab->number, test);
		else
			c->nr_tests++;
	}
	return COMPARISON_KEPT;
}

/* Inline, because gcc drops calls of functions that only prefetch. */
static __always_inline void prefetch(const struct cursor *c, uint32_t place)
{
	uint32_t near = c->down ? place - AHEAD : place + AHEAD;
	uint32_t far = c->down ? near - AHEAD : near + AHEAD;

	if (far >= c->at && far < c->end)
		__builtin_prefetch(&c->rows[c->order[far]]);
	if (near >= c->at && near < c->end) {
		const char *event = (const char *)c->rows[c->order[near]];

		__builtin_prefetch(event);
		__builtin_prefetch(event + sizeof(struct event));
	}
}

/* Goes on to the next row that passes all tests, from the current position. */
static void find(struct cursor *c)
{
	while (c->at < c->end) {
		uint32_t place = c->down ? --c->end : c->at++;
		uint32_t row = c->order ? c->order[place] : place, i;

		if (c->order) {
			if (c->reads_events)
				prefetch(c, place);
			if (row < c->low || row >= c->high)
				continue;
		}
		for (i = 0; i < c->nr_tests && comparison_holds(&c->tests[i], c->rows[row]); i++)
			;
		if (i == c->nr_tests) {
			c->row = row;
			c->place = place;
			return;
		}
	}
	c->is_over = true;
}

static uint32_t below(const struct index *x, const struct comparison *test, bool or_equal)
{
	return test->column->type == COLUMN_TEXT ? index_below_text(x, test->text, or_equal)
						 : index_below(x, test->value, or_equal);
}

/* Narrows the range of an index by the tests of its column, which NULL does not pass. */
static void narrow_index(struct cursor *c, const struct index *x, const struct column *column)
{
	for (uint32_t i = 0; i < c->nr_tests; i++) {
		const struct comparison *test = &c->tests[i];
		uint32_t from = index_nulls(x), to = c->end;

		if (test->column != column)
			continue;
		switch (test->op) {
		case SQLITE_INDEX_CONSTRAINT_EQ:
			from = below(x, test, false);
			to = below(x, test, true);
			break;
		case SQLITE_INDEX_CONSTRAINT_GT:
		case SQLITE_INDEX_CONSTRAINT_GE:
			from = below(x, test, test->op == SQLITE_INDEX_CONSTRAINT_GT);
			break;
		case SQLITE_INDEX_CONSTRAINT_LT:
		case SQLITE_INDEX_CONSTRAINT_LE:
			to = below(x, test, test->op == SQLITE_INDEX_CONSTRAINT_LE);
			break;
		default:
			break;
		}
		if (from > c->at)
			c->at = from;
		if (to < c->end)
			c->end = to;
	}
}

/* Uses the index of a plan if it is worth its price. Returns -1 without memory. */
static int use_index(struct cursor *c, const struct vtab *vtab, const struct plan *plan)
{
	struct table *table = &vtab->tables->list[vtab->number];
	struct column *column = &table->columns[plan->index];
	struct index **index = &table->indexes[plan->index];

	if (!*index && !plan->is_sorted && !column->has_index && c->filters <= SCANS)
		return 0;
	if (!*index)
		*index = index_new(column, c->rows, c->end);
	if (!*index)
		return plan->is_sorted ? -1 : 0;
	c->order = index_order(*index);
	c->index = *index;
	c->sorted = column;
	narrow_index(c, *index, column);
	return 0;
}

static int vtab_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
		       sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	const struct vtab *vtab = (const struct vtab *)base->pVtab;
	const struct plan *plan = &vtab->tables->plans[number];
	uint32_t n = rows_count(vtab->tables->rows, vtab->number);

	(void)text;
	(void)argc;
	c->rows = rows_of(vtab->tables->rows, vtab->number);
	c->order = NULL;
	c->sorted = NULL;
	c->low = 0;
	c->high = n;
	c->down = plan->is_down;
	c->reads_events = plan->reads_events;
	c->is_over = false;
	c->filters++;
	switch (read_tests(c, vtab, plan, argv)) {
	case COMPARISON_NO_MEMORY:
		return SQLITE_NOMEM;
	case COMPARISON_NEVER:
		c->is_over = true;
		return SQLITE_OK;
	default:
		break;
	}
	c->at = 0;
	c->end = n;
	if (plan->index >= 0 && use_index(c, vtab, plan))
		return SQLITE_NOMEM;
	if (!c->order) {
		c->at = c->low;
		c->end = c->high;
	}
	find(c);
	return SQLITE_OK;
}

static int vtab_next(sqlite3_vtab_cursor *base)
{
	find((struct cursor *)base);
	return SQLITE_OK;
}

static int vtab_eof(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->is_over;
}

static int vtab_column(sqlite3_vtab_cursor *base, sqlite3_context *result, int number)
{
	const struct cursor *c = (const struct cursor *)base;
	const struct vtab *vtab = (const struct vtab *)base->pVtab;
	const struct column *column = &vtab->tables->list[vtab->number].columns[number];
	/* The value of a sorted column is in the index, and the event far away. */
	bool is_sorted = column == c->sorted;
	const struct event *ev = is_sorted ? NULL : c->rows[c->row];
	struct span span;
	int64_t value;

	if (column->type == COLUMN_INTEGER) {
		if (is_sorted ? index_integer(c->index, c->place, &value)
			      : column_integer(column, ev, &value))
			sqlite3_result_int64(result, value);
	} else if (is_sorted ? index_text(c->index, c->place, &span)
			     : column_span(column, ev, &span)) {
		if (column->type == COLUMN_BLOB)
			sqlite3_result_blob(result, span.at, span.size, SQLITE_STATIC);
		else
			sqlite3_result_text(result, span.at, span.size,
					    column->kind == COLUMN_COMM ? SQLITE_TRANSIENT
									: SQLITE_STATIC);
	}
	return SQLITE_OK;
}

static int vtab_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
	*rowid = ((struct cursor *)base)->row + 1;
	return SQLITE_OK;
}

static const sqlite3_module MODULE = {
	.iVersion = 2,
	.xCreate = vtab_connect,
	.xConnect = vtab_connect,
	.xBestIndex = vtab_best_index,
	.xDisconnect = vtab_disconnect,
	.xDestroy = vtab_disconnect,
	.xOpen = vtab_open,
	.xClose = vtab_close,
	.xFilter = vtab_filter,
	.xNext = vtab_next,
	.xEof = vtab_eof,
	.xColumn = vtab_column,
	.xRowid = vtab_rowid,
};

int tables_register(struct tables *t, sqlite3 *db, struct error *err)
{
	if (sqlite3_create_module_v2(db, "events", &MODULE, t, NULL) != SQLITE_OK)
		return error_set(err, -ENOMEM, "%s", sqlite3_errmsg(db));
	return 0;
}
