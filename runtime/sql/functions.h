/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SQL functions about events: names of numbers, kernel symbols, task names, addresses of networks,
 * percentiles. A function that finds no name returns "??", or "UNKNOWN" for symbolic().
 */
#pragma once
#include <stdint.h>

struct error;
struct formats;
struct functions;
struct sqlite3;
struct tasks;

/* What ksymbol() and comm_get() look into; it must outlive the functions. Returns NULL without
 * memory. */
struct functions *functions_new(struct formats *formats, struct tasks *tasks);
void functions_free(struct functions *f);
/* Adds a list of names: symbolic('field', value) and symbolic('table.field', value) look into the
 * list of that key, symbolic(value) into the only list. separator: the names are those of bits,
 * which are joined with it; NULL: of values. The value is masked first. The list with the key "" is
 * that of the system calls. Returns its number or a negative errno. */
int functions_add_list(struct functions *f, const char *key, const char *separator, uint64_t mask);
/* Adds a name to a list. Of two names of a value, the first one counts. */
int functions_add_name(struct functions *f, uint32_t list, int64_t value, const char *name);
int functions_register(struct functions *f, struct sqlite3 *db, struct error *err);
