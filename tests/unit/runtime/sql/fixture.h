/* SPDX-License-Identifier: GPL-2.0-only */
/* A database in memory with the kept rows that its tables of events read. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "error.h"
#include "sql/database.h"
#include "sql/functions.h"
#include "sql/rows.h"
#include "sql/tables.h"

struct fixture {
	struct rows *rows;
	struct tables *tables;
	struct functions *functions;
	struct database *db;
};

static inline void exec(struct database *db, const char *sql)
{
	struct error err = {0};

	if (database_exec(db, sql, &err))
		fail_msg("%s: %s", sql, err.text);
}

static inline struct fixture *fixture_new(struct formats *formats, struct tasks *tasks)
{
	static struct fixture f;
	struct error err = {0};

	f.rows = rows_new(1 << 24);
	f.tables = tables_new(f.rows);
	f.functions = functions_new(formats, tasks);
	f.db = database_open(NULL, true, f.tables, f.functions, &err);
	assert_non_null(f.db);
	return &f;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(database_close(f->db, NULL), 0);
	functions_free(f->functions);
	tables_free(f->tables);
	rows_free(f->rows);
	return 0;
}
