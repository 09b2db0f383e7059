/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The formats of all tracepoints of the running kernel (its tracefs) or of a recording. A format is
 * read and parsed when it is first asked for.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct addresses;
struct error;
struct formats;
struct tracepoint;

/* Opens the formats of the running kernel. Returns NULL with errno and a message if tracefs is not
 * mounted, which is not done here, or not readable. */
struct formats *formats_open_tracefs(struct error *err);
/* Returns an empty set, to be filled from a recording. */
struct formats *formats_new(void);
void formats_free(struct formats *f);

/* Adds the text of a format file; its id is the common_type of that recording's events. A text that
 * does not parse is kept, and formats_find() says what is wrong with it. Returns -EEXIST if there
 * is a text for the event already, which stays, or -EINVAL without a usable name. */
int formats_add_text(struct formats *f, const char *system, const char *text, size_t size);
/* Adds the kallsyms of a recording, for formats that print %pS or %ps. */
int formats_add_kallsyms(struct formats *f, const char *text, size_t size);
/* Adds a piece of the kernel symbols that a stream brings; the last one is empty. They take the
 * place of all others. */
void formats_add_symbols(struct formats *f, const char *piece, size_t size);
/* The stream begins again: symbols that were not complete are dropped. */
void formats_restart_symbols(struct formats *f);
/* Returns the table of the kernel symbols, which lives as long as f. */
struct addresses *formats_symbols(struct formats *f);
/* Adds the printk_formats of a recording, for formats that print the string at a kernel address. */
int formats_add_strings(struct formats *f, const char *text, size_t size);
/* The recording was made on the running kernel: unless it brought symbols, those of /proc/kallsyms
 * are used. Returns 0 or -ENOMEM. */
int formats_use_own_symbols(struct formats *f);
/* The symbol name was at addr when the recording was made; see addresses_anchor(). */
void formats_anchor_symbols(struct formats *f, const char *name, uint64_t addr);
/* Returns the kernel symbol that covers addr, and its address in *start; NULL if there is none. The
 * running kernel's symbols are read by the first call. The name lives as long as f. */
const char *formats_symbol(struct formats *f, uint64_t addr, uint64_t *start);
/* Returns the string at a kernel address, or NULL. It lives as long as f. */
const char *formats_string(struct formats *f, uint64_t addr);

/* Returns all "system:name", sorted, one per line. The caller frees the text with free(). */
char *formats_names(struct formats *f);

/* Returns NULL with errno and a message that has the nearest name. The tracepoint lives as long
 * as f. */
struct tracepoint *formats_find(struct formats *f, const char *system, const char *name,
				struct error *err);
/* Returns the tracepoint with this id among those that formats_find() returned or that were added;
 * NULL if there is none. */
struct tracepoint *formats_by_id(struct formats *f, uint64_t id);
