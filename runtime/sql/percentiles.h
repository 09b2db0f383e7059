/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The aggregates percentile(value, 0..100), quantile(value, 0..1) and median(value) for SQLite.
 * They are exact: all values are kept until the group ends. Between two values they interpolate, as
 * SQLite's own extension does. NULL is ignored.
 */
#pragma once

struct sqlite3;

/* Returns a status of SQLite. */
int percentiles_register(struct sqlite3 *db);
