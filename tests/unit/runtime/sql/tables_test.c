/* SPDX-License-Identifier: GPL-2.0-only */
/* Queries on virtual tables must have the results that they have on ordinary tables with the same
 * rows: thousands of random ones are compared. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "event.h"
#include "fixture.h"
#include "formats/tracepoint.h"
#include "sql/columns.h"

enum { A = EVENT_FIRST, B, ROWS = 400, QUERIES = 3000, BASE = 1000000 };

struct payload {
	int32_t small;
	uint32_t word;
	uint64_t large;
	int16_t half;
	uint8_t byte;
	int8_t sign;
	char name[8];
	uint32_t any; /* __data_loc */
	uint8_t bytes[4];
	char text[8]; /* what any points to */
};

#define FIELD(member, column_type, field_flags)                                     \
	{                                                                           \
		.name = #member, .kind = COLUMN_FIELD, .type = column_type,         \
		.offset = offsetof(struct payload, member),                         \
		.size = sizeof(((struct payload *)0)->member), .flags = field_flags \
	}

static struct column columns[] = {
	{.name = "_pid", .kind = COLUMN_PID},
	{.name = "_time", .kind = COLUMN_TIME},
	{.name = "_cpu", .kind = COLUMN_CPU},
	{.name = "_period", .kind = COLUMN_PERIOD},
	FIELD(small, COLUMN_INTEGER, FIELD_SIGNED),
	FIELD(word, COLUMN_INTEGER, 0),
	FIELD(large, COLUMN_INTEGER, 0),
	FIELD(half, COLUMN_INTEGER, FIELD_SIGNED),
	FIELD(byte, COLUMN_INTEGER, 0),
	FIELD(sign, COLUMN_INTEGER, FIELD_SIGNED),
	FIELD(name, COLUMN_TEXT, FIELD_STRING),
	FIELD(any, COLUMN_TEXT, FIELD_STRING | FIELD_DYNAMIC),
	FIELD(bytes, COLUMN_BLOB, FIELD_ARRAY),
};
enum { NR_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* One in ten payloads is cut somewhere, so that the fields after that are NULL. */
static void add_random(struct rows *rows, uint16_t class, int i)
{
	static const char names[][8] = {
		"", "a", "ab", {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}, "B", "\xc3\xa4", "z"};
	struct payload p = {
		.small = random() % 7 - 3,
		.word = random() % 3 ? random() % 5 : UINT32_MAX,
		.large = random() % 3 ? (uint64_t)random() % 9 : UINT64_MAX - random() % 3,
		.half = random() % 2 ? INT16_MIN : random() % 4,
		.byte = random() % 200,
		.sign = random() % 200 - 100,
		.any = 5 << 16 | offsetof(struct payload, text),
		.bytes = {random() % 3},
	};
	struct event ev = {.class = class,
			   .time = 10 * i - random() % 30,
			   .pid = random() % 5,
			   .cpu = random() % 3 - 1,
			   .period = random() % 2 ? 1 : UINT64_MAX,
			   .raw = (const void *)&p,
			   .raw_size = sizeof(p)};

	memcpy(p.name, names[random() % 7], sizeof(p.name));
	memcpy(p.text, names[random() % 7], sizeof(p.text));
	if (random() % 10 == 0)
		ev.raw_size = random() % sizeof(p);
	rows_add(rows, &ev, 1);
}

static int set_up(void **state)
{
	struct fixture *f = fixture_new(NULL, NULL);

	srandom(7);
	for (int t = 0; t < 2; t++) {
		assert_int_equal(tables_add(f->tables, A + t), t);
		for (int i = 0; i < NR_COLUMNS; i++) {
			/* Table B has indexes on some. */
			columns[i].has_index = t && i % 3 == 1;
			assert_int_equal(tables_add_column(f->tables, t, &columns[i]), 0);
		}
	}
	for (int i = 0; i < 2 * ROWS; i++)
		add_random(f->rows, A + i % 2, i);
	tables_set_base(f->tables, BASE);
	exec(f->db,
	     "CREATE VIRTUAL TABLE va USING events(0); CREATE VIRTUAL TABLE vb USING events(1);"
	     "CREATE TABLE sa AS SELECT * FROM va LIMIT 0; CREATE TABLE sb AS SELECT * FROM vb "
	     "LIMIT 0;"
	     "INSERT INTO sa SELECT * FROM va; INSERT INTO sb SELECT * FROM vb");
	*state = f;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *print_row(struct query *q)
{
	char line[1024], *at = line;

	for (int i = 0; i < query_columns(q); i++) {
		struct value v;

		query_read(q, i, &v);
		if (v.type == VALUE_INTEGER)
			at += sprintf(at, "|%lld", (long long)v.integer);
		else if (v.type == VALUE_REAL)
			at += sprintf(at, "|%.12g", v.real);
		else if (v.type == VALUE_NULL)
			at += sprintf(at, "|NULL");
		else
			at += sprintf(at, "|%d'%.*s'", v.type, v.size, v.text);
	}
	return strdup(line);
}

struct answer {
	char **lines;
	int n;
};

/* Runs a query whose tables begin with a letter instead of @. Its rows are sorted unless it does
 * that itself. */
static struct answer ask(struct database *db, const char *text, char letter)
{
	struct query_error err;
	struct answer a = {0};
	char *sql = strdup(text);
	struct query *q;
	int length, status;

	for (char *at = sql; *at; at++)
		if (*at == '@')
			*at = letter;
	q = query_new(db, sql, &length, &err);
	if (!q)
		fail_msg("%s: %s", sql, err.text);
	while ((status = query_step(q, &err)) > 0) {
		a.lines = realloc(a.lines, (a.n + 1) * sizeof(*a.lines));
		a.lines[a.n++] = print_row(q);
	}
	if (status < 0)
		fail_msg("%s: %s", sql, err.text);
	if (a.n && !strstr(sql, "ORDER BY"))
		qsort(a.lines, a.n, sizeof(*a.lines), by_text);
	query_free(q);
	free(sql);
	return a;
}

static void free_answer(struct answer a)
{
	for (int i = 0; i < a.n; i++)
		free(a.lines[i]);
	free(a.lines);
}

/* Returns the number of rows, which are the same from both tables. */
static int same(struct database *db, const char *sql)
{
	struct answer ours = ask(db, sql, 'v'), theirs = ask(db, sql, 's');
	int n = ours.n;

	if (ours.n != theirs.n)
		fail_msg("%s: %d rows instead of %d", sql, ours.n, theirs.n);
	for (int i = 0; i < n; i++)
		if (strcmp(ours.lines[i], theirs.lines[i]))
			fail_msg("%s: %s instead of %s", sql, ours.lines[i], theirs.lines[i]);
	free_answer(ours);
	free_answer(theirs);
	return n;
}

static const char *column(void)
{
	return columns[random() % NR_COLUMNS].name;
}

static const char *value(char *out)
{
	static const char *const values[] = {
		"0",
		"1",
		"-3",
		"2.5",
		"-0.5",
		"1e19",
		"-1e19",
		"NULL",
		"'a'",
		"'ab'",
		"'B'",
		"''",
		"'1'",
		"x'00'",
		"-32768",
		"'\xc3\xa4'",
		"3.0",
		"100",
		"-1",
		"4294967295",
		"9223372036854775807",
		"-9223372036854775808",
		"9223372036854775808.0",
		"1001000",
		"1002000.5",
		"'abcdefgh'",
		"(SELECT '1')",
		"(SELECT 1)",
	};

	return strcpy(out, values[random() % (sizeof(values) / sizeof(values[0]))]);
}

/* Appends one to three tests of the columns of a table. */
static void add_condition(char *sql, const char *table)
{
	static const char *const ops[] = {"=", "<", "<=", ">", ">=", "<>", "IS", "=", "="};
	char a[64], b[64];
	int n = 1 + random() % 3;

	for (int i = 0; i < n; i++) {
		strcat(sql, i ? " AND " : " ");
		switch (random() % 8) {
		case 0:
			sprintf(sql + strlen(sql), "%s.%s IN (%s, %s, 1, 'a')", table, column(),
				value(a), value(b));
			break;
		case 1:
			sprintf(sql + strlen(sql), "%s.%s BETWEEN %s AND %s", table, column(),
				value(a), value(b));
			break;
		case 2:
			sprintf(sql + strlen(sql), "%s._time > %ld", table, BASE + random() % 9000);
			break;
		case 3:
			sprintf(sql + strlen(sql), "%s.name GLOB 'a*'", table);
			break;
		default:
			sprintf(sql + strlen(sql), "%s.%s %s %s", table, column(),
				ops[random() % 9], value(a));
		}
	}
}

static void random_queries_have_the_same_rows(void **state)
{
	struct fixture *f = *state;
	int with_rows = 0;

	for (int i = 0; i < QUERIES; i++) {
		const char *table = random() % 2 ? "@a" : "@b", *by = column();
		const char *down = random() % 2 ? " DESC" : "";
		char sql[2048];

		switch (random() % 8) {
		case 0:
			sprintf(sql, "SELECT * FROM %s t WHERE", table);
			add_condition(sql, "t");
			break;
		case 1:
			sprintf(sql,
				"SELECT count(*), sum(small), max(name), min(any), avg(half) FROM "
				"%s t WHERE",
				table);
			add_condition(sql, "t");
			break;
		case 2:
			sprintf(sql,
				"SELECT %s, count(*), max(_time), min(sign) FROM %s t GROUP BY %s",
				by, table, by);
			break;
		case 3:
			sprintf(sql, "SELECT %s, count(*) FROM %s t WHERE", by, table);
			add_condition(sql, "t");
			sprintf(sql + strlen(sql), " GROUP BY %s", by);
			break;
		case 4:
			sprintf(sql, "SELECT DISTINCT %s FROM %s t WHERE", by, table);
			add_condition(sql, "t");
			break;
		case 5:
			sprintf(sql, "SELECT %s FROM %s t WHERE", by, table);
			add_condition(sql, "t");
			sprintf(sql + strlen(sql), " ORDER BY %s%s", by, down);
			break;
		case 6:
			sprintf(sql, "SELECT _time FROM %s t WHERE", table);
			add_condition(sql, "t");
			sprintf(sql + strlen(sql), " ORDER BY _time%s LIMIT 5", down);
			break;
		default:
			sprintf(sql,
				"SELECT count(*), sum(x.small), max(y._time) FROM @a x JOIN %s y "
				"ON x.%s = y.%s WHERE",
				table, by, by);
			add_condition(sql, "x");
			strcat(sql, " AND");
			add_condition(sql, "y");
		}
		with_rows += same(f->db, sql) > 0;
		/* Indexes are made anew now and then. */
		if (i % 50 == 0)
			tables_forget(f->tables);
	}
	assert_true(with_rows > QUERIES / 3);
}

/* The text is only found to be the number 1 by SQLite itself, and the rows are sorted as it
 * believes. */
static void values_of_other_types_keep_the_order(void **state)
{
	struct fixture *f = *state;

	assert_true(same(f->db, "SELECT _time FROM @b WHERE small = (SELECT '1') ORDER BY _time") >
		    5);
	assert_true(
		same(f->db, "SELECT _time FROM @b WHERE small = (SELECT '1') ORDER BY _time DESC") >
		5);
}

static void joins_of_all_rows(void **state)
{
	struct fixture *f = *state;
	char sql[256];

	for (int i = 0; i < NR_COLUMNS; i++) {
		sprintf(sql, "SELECT count(*), sum(y.small) FROM @b x, @a y WHERE x.%s = y.%s",
			columns[i].name, columns[i].name);
		assert_int_equal(same(f->db, sql), 1);
		sprintf(sql,
			"SELECT x._pid, (SELECT min(_time) FROM @a y WHERE y.%s = x.%s AND y._time "
			"> x._time)"
			" FROM @b x",
			columns[i].name, columns[i].name);
		assert_int_equal(same(f->db, sql), ROWS);
	}
}

/* What the plan of a query says about sorting. */
static bool is_sorted_by_sqlite(struct database *db, const char *sql)
{
	char text[256];
	struct answer plan;
	bool sorts = false;

	snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", sql);
	plan = ask(db, text, 'v');
	for (int i = 0; i < plan.n; i++)
		sorts |= strstr(plan.lines[i], "TEMP B-TREE") != NULL;
	free_answer(plan);
	return sorts;
}

static void sorting_is_left_to_the_tables(void **state)
{
	struct fixture *f = *state;

	assert_false(is_sorted_by_sqlite(f->db, "SELECT * FROM @a ORDER BY _time"));
	assert_false(is_sorted_by_sqlite(f->db, "SELECT * FROM @a ORDER BY _time DESC LIMIT 3"));
	assert_false(is_sorted_by_sqlite(f->db, "SELECT name, count(*) FROM @a GROUP BY name"));
	assert_false(is_sorted_by_sqlite(f->db, "SELECT word, count(*) FROM @a GROUP BY word"));
	assert_true(is_sorted_by_sqlite(f->db, "SELECT bytes, count(*) FROM @a GROUP BY bytes"));
	assert_true(is_sorted_by_sqlite(f->db, "SELECT * FROM @a ORDER BY small"));
	/* small is the fifth column, so it has an index in the other table. */
	assert_false(is_sorted_by_sqlite(f->db, "SELECT * FROM @b ORDER BY small"));
	assert_true(is_sorted_by_sqlite(f->db, "SELECT * FROM @b WHERE small > 1 ORDER BY _time"));
}

static void plans_are_readable(void **state)
{
	static const struct {
		const char *sql, *plan;
	} cases[] = {
		{"SELECT * FROM @a", "all rows"},
		{"SELECT * FROM @a WHERE small >= 1 AND name <> 'x' AND _time < 5",
		 "small >= ? AND _time < ? AND name <> ?"},
		{"SELECT * FROM @a WHERE word = 4", "word = ?, index of word"},
		{"SELECT * FROM @a ORDER BY _time DESC", "all rows, backward"},
		{"SELECT name, count(*) FROM @a GROUP BY name", "all rows, sorted by name"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];
		struct answer plan;

		snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", cases[i].sql);
		plan = ask(f->db, text, 'v');
		assert_int_equal(plan.n, 1);
		if (!strstr(plan.lines[0], cases[i].plan))
			fail_msg("%s: %s", cases[i].sql, plan.lines[0]);
		free_answer(plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_queries_have_the_same_rows),
		cmocka_unit_test(values_of_other_types_keep_the_order),
		cmocka_unit_test(joins_of_all_rows),
		cmocka_unit_test(sorting_is_left_to_the_tables),
		cmocka_unit_test(plans_are_readable),
	};

	return cmocka_run_group_tests_name("tables", tests, set_up, tear_down);
}
