/* SPDX-License-Identifier: GPL-2.0-only */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "fixture.h"
#include "process/signals.h"

static int set_up(void **state)
{
	struct fixture *f = fixture_new(NULL, NULL);

	exec(f->db, "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'x'), (2, NULL)");
	*state = f;
	return 0;
}

static void queries_only_read(void **state)
{
	static const struct {
		const char *sql, *denied;
	} cases[] = {
		{"ATTACH '/tmp/x.db' AS x", "ATTACH"},
		{"DETACH main", "DETACH"},
		{"INSERT INTO t VALUES (3, 4)", "INSERT"},
		{"UPDATE t SET a = 1", "UPDATE"},
		{"DELETE FROM t", "DELETE"},
		{"WITH x(a) AS (SELECT 1) DELETE FROM t", "DELETE"},
		{"DROP TABLE t", "DROP"},
		{"CREATE TABLE x(a)", "CREATE"},
		{"CREATE TEMP VIEW x AS SELECT 1", "CREATE"},
		{"CREATE VIRTUAL TABLE x USING fts5(a)", "CREATE"},
		{"VACUUM INTO '/tmp/x.db'", "writing"},
		{"VACUUM", "writing"},
		{"PRAGMA journal_mode = wal", "PRAGMA"},
		{"PRAGMA temp_store_directory = '/tmp'", "PRAGMA"},
		{"SELECT load_extension('x')", "load_extension()"},
		{"BEGIN", "a transaction"},
	};
	struct fixture *f = *state;
	struct query_error err;
	int length;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct query *q = query_new(f->db, cases[i].sql, &length, &err);

		if (q)
			fail_msg("%s is allowed", cases[i].sql);
		assert_string_equal(err.denied, cases[i].denied);
	}
	/* Nothing has changed. */
	struct query *q = query_new(f->db, "SELECT sum(a) FROM t", &length, &err);
	struct value v;

	assert_int_equal(query_step(q, &err), 1);
	query_read(q, 0, &v);
	assert_int_equal(v.integer, 3);
	query_free(q);
}

static void what_reads_is_allowed(void **state)
{
	static const char *const cases[] = {
		"SELECT * FROM pragma_table_info('t')",
		"PRAGMA table_info(t)",
		"SELECT value FROM json_each('[1]')",
		"SELECT name FROM sqlite_master",
		"EXPLAIN QUERY PLAN SELECT * FROM t",
		"WITH RECURSIVE c(x) AS (VALUES (1) UNION SELECT x + 1 FROM c "
		"WHERE x < 9) SELECT * FROM c",
	};
	struct fixture *f = *state;
	struct query_error err;
	int length;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct query *q = query_new(f->db, cases[i], &length, &err);

		if (!q)
			fail_msg("%s: %s", cases[i], err.text);
		assert_int_equal(query_step(q, &err), 1);
		query_free(q);
	}
}

static void statements_follow_each_other(void **state)
{
	static const char sql[] = "SELECT a AS first, b FROM t; -- the end\n";
	struct fixture *f = *state;
	struct query_error err;
	int length, rest;
	struct query *q = query_new(f->db, sql, &length, &err);
	struct value v;

	assert_int_equal(length, strchr(sql, ';') + 1 - sql);
	assert_null(query_new(f->db, sql + length, &rest, &err));
	assert_string_equal(err.text, "");
	assert_int_equal(query_columns(q), 2);
	assert_string_equal(query_name(q, 0), "first");
	for (int run = 0; run < 2; run++) { /* it can run again */
		assert_int_equal(query_step(q, &err), 1);
		query_read(q, 1, &v);
		assert_int_equal(v.type, VALUE_TEXT);
		assert_memory_equal(v.text, "x", v.size);
		assert_int_equal(query_step(q, &err), 1);
		query_read(q, 1, &v);
		assert_int_equal(v.type, VALUE_NULL);
		assert_int_equal(query_step(q, &err), 0);
	}
	query_free(q);
}

static void errors_have_a_place(void **state)
{
	struct fixture *f = *state;
	struct query_error err;
	int length;

	assert_null(query_new(f->db, "SELECT a, c FROM t", &length, &err));
	assert_string_equal(err.text, "no such column: c");
	assert_int_equal(err.offset, 10);
	assert_string_equal(err.denied, "");
	assert_null(query_new(f->db, "SELECT a FORM t", &length, &err));
	assert_int_equal(err.offset, 14);
	assert_int_equal(database_exec(f->db, "SELECT c FROM t", NULL), -5);
}

/* Must come after the other tests of queries: the request stays. */
static void a_signal_ends_queries(void **state)
{
	struct fixture *f = *state;
	struct query_error err;
	int length;
	struct query *q =
		query_new(f->db,
			  "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) "
			  "SELECT count(*) FROM c",
			  &length, &err);

	signals_install();
	signal(SIGALRM, SIG_DFL);
	for (int i = 0; i < 2; i++) { /* the second time, the run has been asked to end already */
		pid_t child = fork();

		if (!child) {
			usleep(300000);
			kill(getppid(), SIGINT);
			_exit(0);
		}
		alarm(60);
		assert_int_equal(query_step(q, &err), -5);
		assert_true(err.interrupted);
		alarm(0);
	}
	query_free(q);
}

/* Comes after a_signal_ends_queries(), whose requests stay. */
static void no_signal_ends_our_own_statements(void **state)
{
	struct fixture *f = *state;
	struct error err = {0};

	assert_true(signals_stop_requested());
	if (database_exec(f->db,
			  "CREATE TABLE n AS WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x "
			  "+ 1 FROM c "
			  "WHERE x < 100000) SELECT x FROM c",
			  &err))
		fail_msg("%s", err.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queries_only_read),
		cmocka_unit_test(what_reads_is_allowed),
		cmocka_unit_test(statements_follow_each_other),
		cmocka_unit_test(errors_have_a_place),
		cmocka_unit_test(a_signal_ends_queries),
		cmocka_unit_test(no_signal_ends_our_own_statements),
	};

	return cmocka_run_group_tests_name("database", tests, set_up, tear_down);
}
