/* SPDX-License-Identifier: GPL-2.0-only */
#include "sql/database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "os/clock.h"
#include "process/signals.h"
#include "sql/functions.h"
#include "sql/tables.h"

enum {
	STEPS = 10000,	       /* of SQLite's machine, between two looks at the signals */
	MAX_LENGTH = 64 << 20, /* bytes of a value */
	BUSY_MS = 2000,
	GRACE = 1000000000, /* ns that a query may go on after the run was asked to end */
};
#define MAX_HEAP (1ull << 30) /* bytes that all of SQLite uses */

/* Table-valued functions are declared when they are first used, which the authorizer cannot tell
 * from statements of the user. So they are used once before. */
static const char TABLE_FUNCTIONS[] =
	"SELECT 1 FROM json_each('[]'), json_tree('[]'), pragma_table_info('x'),"
	"pragma_table_xinfo('x'), pragma_table_list('x'), pragma_function_list LIMIT 0";

struct database {
	sqlite3 *db;
	bool is_ours;	    /* the statement is not the user's */
	bool was_requested; /* the run was asked to end before the statement began */
	bool interrupted;
	uint64_t seen_at; /* when it was seen that the run is to end; 0: not yet */
	const char *denied;
};

struct query {
	struct database *db;
	sqlite3_stmt *statement;
};

/* The names of what is not allowed. All other actions than reading are denied, too. */
static const struct {
	int action;
	const char *name;
} ACTIONS[] = {
	{SQLITE_ATTACH, "ATTACH"},
	{SQLITE_DETACH, "DETACH"},
	{SQLITE_INSERT, "INSERT"},
	{SQLITE_UPDATE, "UPDATE"},
	{SQLITE_DELETE, "DELETE"},
	{SQLITE_PRAGMA, "PRAGMA"},
	{SQLITE_TRANSACTION, "a transaction"},
	{SQLITE_SAVEPOINT, "a savepoint"},
	{SQLITE_ANALYZE, "ANALYZE"},
	{SQLITE_REINDEX, "REINDEX"},
	{SQLITE_ALTER_TABLE, "ALTER TABLE"},
	{SQLITE_CREATE_INDEX, "CREATE INDEX"},
	{SQLITE_CREATE_TABLE, "CREATE TABLE"},
	{SQLITE_CREATE_TEMP_INDEX, "CREATE INDEX"},
	{SQLITE_CREATE_TEMP_TABLE, "CREATE TABLE"},
	{SQLITE_CREATE_TEMP_TRIGGER, "CREATE TRIGGER"},
	{SQLITE_CREATE_TEMP_VIEW, "CREATE VIEW"},
	{SQLITE_CREATE_TRIGGER, "CREATE TRIGGER"},
	{SQLITE_CREATE_VIEW, "CREATE VIEW"},
	{SQLITE_CREATE_VTABLE, "CREATE VIRTUAL TABLE"},
	{SQLITE_DROP_INDEX, "DROP INDEX"},
	{SQLITE_DROP_TABLE, "DROP TABLE"},
	{SQLITE_DROP_TEMP_TABLE, "DROP TABLE"},
	{SQLITE_DROP_VTABLE, "DROP TABLE"},
	{SQLITE_FUNCTION, "load_extension()"},
};

static const char *const READING_PRAGMAS[] = {"table_info",    "table_xinfo",	"table_list",
					      "function_list", "database_list", "compile_options"};

static bool is_allowed(int action, const char *first, const char *second)
{
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return true;
	case SQLITE_FUNCTION:
		return second && sqlite3_stricmp(second, "load_extension");
	case SQLITE_PRAGMA:
		for (size_t i = 0; i < sizeof(READING_PRAGMAS) / sizeof(READING_PRAGMAS[0]); i++)
			if (!sqlite3_stricmp(first, READING_PRAGMAS[i]))
				return true;
		return false;
	default:
		return false;
	}
}

static int authorize(void *arg, int action, const char *first, const char *second,
		     const char *database, const char *trigger)
{
	struct database *db = arg;

	(void)database;
	(void)trigger;
	if (db->is_ours || is_allowed(action, first, second))
		return SQLITE_OK;
	if (db->denied)
		return SQLITE_DENY;
	if (action == SQLITE_INSERT || action == SQLITE_DELETE) {
		/* The first thing that CREATE and DROP do is to change SQLite's own tables. */
		if (!sqlite3_strnicmp(first, "sqlite_", 7)) {
			db->denied = action == SQLITE_INSERT ? "CREATE" : "DROP";
			return SQLITE_DENY;
		}
	}
	db->denied = "writing";
	for (size_t i = 0; i < sizeof(ACTIONS) / sizeof(ACTIONS[0]); i++)
		if (ACTIONS[i].action == action)
			db->denied = ACTIONS[i].name;
	return SQLITE_DENY;
}

/* The request that ended the run does not end the queries that follow it, but the next one does:
 * while it waits for SQLite, the process is not killed. A query that runs when the request comes
 * may go on for a moment, as most are about to end. */
static int check_signals(void *arg)
{
	struct database *db = arg;

	/* Statements of our own end by themselves, and rows that are being copied must not be lost.
	 */
	if (db->is_ours)
		return 0;
	if (!db->was_requested && !db->seen_at && signals_stop_requested())
		db->seen_at = clock_monotonic();
	if (signals_must_end() || (db->seen_at && clock_monotonic() - db->seen_at > GRACE))
		db->interrupted = true;
	return db->interrupted;
}

static void begin(struct database *db, bool is_ours)
{
	db->is_ours = is_ours;
	db->denied = NULL;
	db->interrupted = false;
	db->seen_at = 0;
	db->was_requested = signals_stop_requested();
}

struct database *database_open(const char *path, bool in_memory, struct tables *tables,
			       struct functions *functions, struct error *err)
{
	struct database *db = calloc(1, sizeof(*db));
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	int on;

	if (!db) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	sqlite3_hard_heap_limit64(MAX_HEAP);
	if (sqlite3_open_v2(path ? path : in_memory ? ":memory:" : "", &db->db, flags, NULL)) {
		error_set(err, -EIO, "%s", sqlite3_errmsg(db->db));
		goto failed;
	}
	sqlite3_limit(db->db, SQLITE_LIMIT_LENGTH, MAX_LENGTH);
	sqlite3_db_config(db->db, SQLITE_DBCONFIG_DEFENSIVE, 1, &on);
	sqlite3_busy_timeout(db->db, BUSY_MS);
	sqlite3_set_authorizer(db->db, authorize, db);
	sqlite3_progress_handler(db->db, STEPS, check_signals, db);
	if (tables_register(tables, db->db, err) || functions_register(functions, db->db, err))
		goto failed;
	/* What was sorted and does not fit into the cache stays in memory, which is bounded. A
	 * process that is killed must not leave a broken file, but one that loses its power may. */
	if (database_exec(db,
			  "PRAGMA temp_store = memory; PRAGMA synchronous = off;"
			  "PRAGMA cache_size = -65536",
			  err))
		goto failed;
	if (database_exec(db, TABLE_FUNCTIONS, err))
		goto failed;
	return db;

failed:
	if (path && err)
		error_set(err, -EIO, "cannot open the database '%s': %s", path, err->text);
	sqlite3_close_v2(db->db);
	free(db);
	return NULL;
}

int database_close(struct database *db, struct error *err)
{
	int status = sqlite3_close(db->db);

	if (status) {
		sqlite3_close_v2(db->db);
		error_set(err, -EIO, "%s", sqlite3_errstr(status));
	}
	free(db);
	return status ? -EIO : 0;
}

int database_exec(struct database *db, const char *sql, struct error *err)
{
	int status;

	begin(db, true);
	status = sqlite3_exec(db->db, sql, NULL, NULL, NULL);
	if (status == SQLITE_OK)
		return 0;
	return error_set(err, -EIO, "%s", sqlite3_errmsg(db->db));
}

static void explain(const struct database *db, struct query_error *err)
{
	snprintf(err->text, sizeof(err->text), "%s", sqlite3_errmsg(db->db));
	err->offset = sqlite3_error_offset(db->db);
	err->interrupted = db->interrupted;
	snprintf(err->denied, sizeof(err->denied), "%s", db->denied ? db->denied : "");
}

struct query *query_new(struct database *db, const char *sql, int *length, struct query_error *err)
{
	struct query *q = calloc(1, sizeof(*q));
	const char *rest;

	err->text[0] = 0;
	if (!q) {
		*err = (struct query_error){.text = "out of memory", .offset = -1};
		return NULL;
	}
	q->db = db;
	begin(db, false);
	if (sqlite3_prepare_v3(db->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->statement, &rest)) {
		explain(db, err);
		goto failed;
	}
	*length = rest - sql;
	if (!q->statement)
		goto failed;
	if (!sqlite3_stmt_readonly(q->statement)) {
		db->denied = "writing";
		explain(db, err);
		goto failed;
	}
	return q;

failed:
	query_free(q);
	return NULL;
}

void query_free(struct query *q)
{
	if (!q)
		return;
	sqlite3_finalize(q->statement);
	free(q);
}

int query_columns(const struct query *q)
{
	return sqlite3_column_count(q->statement);
}

const char *query_name(const struct query *q, int column)
{
	const char *name = sqlite3_column_name(q->statement, column);

	return name ? name : "";
}

bool query_origin(const struct query *q, int column, const char **table, const char **name)
{
	*table = sqlite3_column_table_name(q->statement, column);
	*name = sqlite3_column_origin_name(q->statement, column);
	return *table && *name;
}

int query_step(struct query *q, struct query_error *err)
{
	int status;

	if (!sqlite3_stmt_busy(q->statement))
		begin(q->db, false);
	signals_wait_for_others(true);
	status = sqlite3_step(q->statement);
	signals_wait_for_others(false);
	if (status == SQLITE_ROW)
		return 1;
	if (status != SQLITE_DONE)
		explain(q->db, err);
	sqlite3_reset(q->statement);
	return status == SQLITE_DONE ? 0 : -EIO;
}

void query_read(const struct query *q, int column, struct value *out)
{
	sqlite3_stmt *s = q->statement;

	out->type = sqlite3_column_type(s, column);
	switch (out->type) {
	case SQLITE_INTEGER:
		out->integer = sqlite3_column_int64(s, column);
		break;
	case SQLITE_FLOAT:
		out->real = sqlite3_column_double(s, column);
		break;
	case SQLITE_TEXT:
		out->text = (const char *)sqlite3_column_text(s, column);
		out->size = sqlite3_column_bytes(s, column);
		break;
	case SQLITE_BLOB:
		out->text = sqlite3_column_blob(s, column);
		out->size = sqlite3_column_bytes(s, column);
		break;
	}
}
