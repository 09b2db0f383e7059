/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The aggregates variance(value) and stddev(value) for SQLite: those of all values of the group,
 * as in tables of latencies. NULL is ignored.
 */
#pragma once

struct sqlite3;

/* Returns a status of SQLite. */
int variance_register(struct sqlite3 *db);
