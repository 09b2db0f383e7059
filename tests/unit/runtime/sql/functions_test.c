/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>
#include "fixture.h"
#include "formats/formats.h"
#include "session/tasks.h"

static struct formats *formats;
static struct tasks *tasks;

static int set_up(void **state)
{
	static const char kallsyms[] = "ffffffff81000000 T first\nffffffff81000100 T second\n";
	struct fixture *f;
	int list;

	formats = formats_new();
	formats_add_kallsyms(formats, kallsyms, sizeof(kallsyms) - 1);
	tasks = tasks_new(8);
	tasks_set(tasks, 7, "seven", 0);
	f = fixture_new(formats, tasks);
	list = functions_add_list(f->functions, "entry.vec", NULL, -1);
	functions_add_name(f->functions, list, 1, "TIMER");
	functions_add_name(f->functions, list, -1, "NONE");
	list = functions_add_list(f->functions, "sw.state", "|", 0xff);
	functions_add_name(f->functions, list, 0, "zero");
	functions_add_name(f->functions, list, 1, "S");
	functions_add_name(f->functions, list, 2, "D");
	list = functions_add_list(f->functions, "", NULL, -1);
	functions_add_name(f->functions, list, 59, "execve");
	*state = f;
	return 0;
}

static int tear_down_all(void **state)
{
	tear_down(state);
	tasks_free(tasks);
	formats_free(formats);
	return 0;
}

/* Compares the value of an expression, or its error message. */
static void is(struct database *db, const char *expression, const char *expected)
{
	char sql[512], text[512];
	struct query_error err;
	struct value v;
	struct query *q;
	int length;

	snprintf(sql, sizeof(sql), "SELECT CAST(%s AS TEXT)", expression);
	q = query_new(db, sql, &length, &err);
	if (!q)
		fail_msg("%s: %s", sql, err.text);
	if (query_step(q, &err) < 0) {
		assert_string_equal(err.text, expected);
	} else {
		query_read(q, 0, &v);
		snprintf(text, sizeof(text), "%.*s", v.type == VALUE_NULL ? 4 : v.size,
			 v.type == VALUE_NULL ? "NULL" : v.text);
		if (strcmp(text, expected))
			fail_msg("%s: %s instead of %s", expression, text, expected);
	}
	query_free(q);
}

static void names_of_numbers(void **state)
{
	struct database *db = ((struct fixture *)*state)->db;

	is(db, "symbolic('vec', 1)", "TIMER");
	is(db, "symbolic('entry.vec', -1)", "NONE");
	is(db, "symbolic('entry.vec', 5)", "UNKNOWN");
	is(db, "symbolic('vec', NULL)", "NULL");
	is(db, "symbolic('state', 3)", "S|D");
	is(db, "symbolic('state', 0)", "");
	is(db, "symbolic('state', 0x109)", "S|0x8");
	is(db, "symbolic('vex', 1)",
	   "symbolic(): 'vex' has no names; there are entry.vec, sw.state");
	is(db, "symbolic('other.vec', 1)",
	   "symbolic(): 'other.vec' has no names; there are entry.vec, sw.state");
	is(db, "symbolic(1)",
	   "symbolic() needs the name of the field as well; there are entry.vec, sw.state");
	is(db, "syscall(59)", "execve");
	is(db, "syscall_name(60)", "??");
	is(db, "ksymbol(0xffffffff81000101)", "second");
	is(db, "ksymbol(5)", "??");
	is(db, "comm_get(7)", "seven");
	is(db, "comm_get(8)", "<...>");
}

static void addresses_and_ids(void **state)
{
	struct database *db = ((struct fixture *)*state)->db;

	is(db, "ipv4_str(x'7f000001')", "127.0.0.1");
	is(db, "ipv4_hstr(x'0100007f')", "127.0.0.1");
	is(db, "ipv4_str(x'7f0000')", "??");
	is(db, "ipv4_str(NULL)", "??");
	is(db, "ipv6_str(x'20010db8000000000000000000000001')", "2001:db8::1");
	is(db, "ipsa_str(x'02001f90c0a80101' || x'')", "192.168.1.1:8080");
	is(db, "ipsa_hstr(x'0200901f0101a8c0')", "192.168.1.1:8080");
	is(db, "ipsa_str(x'0a001f900000000020010db800000000000000000000000100000000')",
	   "[2001:db8::1]:8080");
	is(db, "ipsa_str(x'0a001f90000000002001')", "??");
	is(db, "ipsa_str(x'0900')", "??");
	is(db, "uuid_str(x'550e8400e29b41d4a716446655440000')",
	   "550e8400-e29b-41d4-a716-446655440000");
	is(db, "guid_str(x'550e8400e29b41d4a716446655440000')",
	   "00840e55-9be2-d441-a716-446655440000");
	is(db, "mac_str(x'001a2b3c4d5e')", "00:1a:2b:3c:4d:5e");
	is(db, "element(x'0100000000000000ffffffffffffffff', 1)", "-1");
	is(db, "element(x'01000000', 1, 2)", "0");
	is(db, "element(x'01000000', 1)", "NULL");
	is(db, "element(x'01000000', -1, 1)", "NULL");
	is(db, "element(x'01000000', 0, 3)", "element(): the size is 1, 2, 4 or 8 bytes");
}

static void percentiles_interpolate(void **state)
{
	struct database *db = ((struct fixture *)*state)->db;
	static const char many[] =
		"(WITH RECURSIVE c(x) AS (VALUES (0) UNION ALL SELECT x + 1 FROM c WHERE x < 1000) "
		"SELECT %s FROM (SELECT x FROM c ORDER BY x * 7919 %% 1001))";
	static const struct {
		const char *call, *expected;
	} cases[] = {
		{"percentile(x, 0)", "0.0"},
		{"percentile(x, 100)", "1000.0"},
		{"percentile(x, 99)", "990.0"},
		{"quantile(x, 0.9)", "900.0"},
		{"quantile(x, 0.99905)", "999.05"},
		{"median(x)", "500.0"},
		{"median(x % 2)", "0.0"},
		{"median(-x)", "-500.0"},
		{"median(NULL)", "NULL"},
		{"median(1)", "1.0"},
		{"percentile(x, 101)", "percentile(): the second argument is from 0 to 100"},
		{"quantile(x, -0.1)", "quantile(): the second argument is from 0 to 1"},
		{"quantile(x, 'a')", "quantile(): the second argument is from 0 to 1"},
		{"quantile(x, x / 1000.0)",
		 "the second argument must be the same for all rows of a group"},
		{"median('a')", "percentiles need numbers"},
		{"variance(x)", "83500.0"},
		{"variance(1000000000000 + x)", "83500.0"},
		{"stddev(x) * stddev(x) - 83500 < 1e-9", "1"},
		{"variance(1)", "0.0"},
		{"stddev(NULL)", "NULL"},
		{"stddev('a')", "variance() and stddev() need numbers"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char sql[512];

		snprintf(sql, sizeof(sql), many, cases[i].call);
		is(db, sql, cases[i].expected);
	}
	is(db, "(SELECT median(x) FROM (SELECT 1 x UNION ALL SELECT 2))", "1.5");
	is(db, "(SELECT median(1) WHERE 0)", "NULL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_numbers),
		cmocka_unit_test(addresses_and_ids),
		cmocka_unit_test(percentiles_interpolate),
	};

	return cmocka_run_group_tests_name("functions", tests, set_up, tear_down_all);
}
