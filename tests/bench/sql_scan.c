/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sql_scan: the cost of SQL on kept events, in ns of CPU time per event. Prints a line for each
 * query: its name, the cost on the kept events, and that of inserting them into an SQLite table,
 * which a query on that table would need first. The events look like sched_switch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "error.h"
#include "event.h"
#include "formats/tracepoint.h"
#include "sql/columns.h"
#include "sql/database.h"
#include "sql/functions.h"
#include "sql/rows.h"
#include "sql/tables.h"

enum { N = 1000000, TIMES = 3, CLASS = EVENT_FIRST };

struct payload {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t common_pid;
	char prev_comm[16];
	int32_t prev_pid, prev_prio;
	int64_t prev_state;
	char next_comm[16];
	int32_t next_pid, next_prio;
};

#define FIELD(member, column_type)                                                   \
	{                                                                            \
		.name = #member, .kind = COLUMN_FIELD, .type = column_type,          \
		.offset = offsetof(struct payload, member),                          \
		.size = sizeof(((struct payload *)0)->member), .flags = FIELD_SIGNED \
	}

static const struct column COLUMNS[] = {
	{.name = "_pid", .kind = COLUMN_PID},
	{.name = "_tid", .kind = COLUMN_TID},
	{.name = "_time", .kind = COLUMN_TIME},
	{.name = "_cpu", .kind = COLUMN_CPU},
	{.name = "_period", .kind = COLUMN_PERIOD},
	FIELD(flags, COLUMN_INTEGER),
	FIELD(preempt_count, COLUMN_INTEGER),
	FIELD(common_pid, COLUMN_INTEGER),
	FIELD(prev_comm, COLUMN_TEXT),
	FIELD(prev_pid, COLUMN_INTEGER),
	FIELD(prev_prio, COLUMN_INTEGER),
	FIELD(prev_state, COLUMN_INTEGER),
	FIELD(next_comm, COLUMN_TEXT),
	FIELD(next_pid, COLUMN_INTEGER),
	FIELD(next_prio, COLUMN_INTEGER),
};

static const struct {
	const char *name, *sql;
} QUERIES[] = {
	{"sql_filter", "SELECT count(*), max(_time) FROM t WHERE next_pid = 77"},
	{"sql_text", "SELECT count(*), max(_time) FROM t WHERE next_comm = 'task-77'"},
	{"sql_range", "SELECT count(*) FROM t WHERE prev_state > 8 AND next_pid < 10"},
	{"sql_times", "SELECT sum(next_pid) FROM t WHERE _time BETWEEN 400000000 AND 410000000"},
	{"sql_sum", "SELECT sum(next_pid) FROM t"},
	{"sql_count_by", "SELECT next_pid, count(*) FROM t GROUP BY next_pid"},
	{"sql_group", "SELECT next_pid, count(*), max(_time) FROM t GROUP BY next_pid"},
	{"sql_group_text", "SELECT next_comm, count(*) FROM t GROUP BY next_comm"},
};

static uint64_t cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void fill(struct rows *rows)
{
	struct payload payload = {
		.type = 1, .preempt_count = 3, .prev_prio = 120, .next_prio = 120};
	struct event ev = {.class = CLASS,
			   .raw = (const void *)&payload,
			   .raw_size = sizeof(payload),
			   .period = 1};

	srandom(1);
	for (int i = 0; i < N; i++) {
		payload.prev_pid = payload.next_pid;
		payload.next_pid = random() % 500;
		payload.prev_state = random() % 16;
		snprintf(payload.prev_comm, 16, "task-%d", payload.prev_pid);
		snprintf(payload.next_comm, 16, "task-%d", payload.next_pid);
		payload.common_pid = ev.pid = ev.tid = payload.prev_pid;
		ev.time = 1000.0 * i;
		ev.cpu = i & 1;
		rows_add(rows, &ev, 1);
	}
}

static double run(struct database *db, const char *sql)
{
	struct query_error err;
	uint64_t least = UINT64_MAX;
	int length;

	for (int i = 0; i < TIMES; i++) {
		struct query *q = query_new(db, sql, &length, &err);
		uint64_t start = cpu_time(), took;

		if (!q) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		while (query_step(q, &err) > 0)
			;
		took = cpu_time() - start;
		least = took < least ? took : least;
		query_free(q);
	}
	return (double)least / N;
}

/* Returns the ns per row. */
static double insert(struct tables *tables, struct functions *functions)
{
	struct error err = {0};
	struct database *db = database_open(NULL, true, tables, functions, &err);
	uint64_t start;

	if (!db ||
	    database_exec(db,
			  "CREATE VIRTUAL TABLE temp.kept USING events(0); CREATE TABLE t AS "
			  "SELECT * FROM temp.kept LIMIT 0",
			  &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	start = cpu_time();
	database_exec(db, "INSERT INTO t SELECT * FROM temp.kept", &err);
	start = cpu_time() - start;
	database_close(db, NULL);
	return (double)start / N;
}

int main(void)
{
	struct error err = {0};
	struct rows *rows = rows_new(1ull << 30);
	struct tables *tables = tables_new(rows);
	struct functions *functions = functions_new(NULL, NULL);
	struct database *db;
	double inserting;

	tables_add(tables, CLASS);
	for (size_t i = 0; i < sizeof(COLUMNS) / sizeof(COLUMNS[0]); i++)
		tables_add_column(tables, 0, &COLUMNS[i]);
	fill(rows);
	db = database_open(NULL, true, tables, functions, &err);
	if (!db || database_exec(db, "CREATE VIRTUAL TABLE t USING events(0)", &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	inserting = insert(tables, functions);
	for (size_t i = 0; i < sizeof(QUERIES) / sizeof(QUERIES[0]); i++) {
		tables_forget(tables);
		printf("%s %.1f %.1f\n", QUERIES[i].name, run(db, QUERIES[i].sql), inserting);
	}
	database_close(db, NULL);
	functions_free(functions);
	tables_free(tables);
	rows_free(rows);
	return 0;
}
