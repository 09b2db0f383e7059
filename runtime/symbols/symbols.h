/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User space symbols: the files that processes have mapped, and the functions at offsets in them. A
 * file is opened as soon as a process is known to have it mapped, because both may be gone later;
 * its symbols are read by the first lookup. Descriptors, tables and cached lookups are bounded: the
 * least recently used go first.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "symbols/demangle.h"

struct buildids;
struct string_pool;
struct symbols;

/* Identifies a mapped file: by its inode, or by its build id (then inode is 0). */
struct symbols_file {
	const char *path; /* in the process; may end in " (deleted)"; or "[vdso]" */
	uint32_t maj, min;
	uint64_t inode;
	const uint8_t *build_id;
	uint32_t build_id_size;
	bool is_data; /* its variables are looked up, not its functions. The path may be "[heap]" */
};

struct symbol {
	const char *name; /* NULL: unknown. Lives as long as the symbols. */
	uint64_t offset;  /* from the start of the function */
};

struct symbols_stats {
	uint64_t bytes;	 /* of tables and names */
	uint32_t files;	 /* known */
	uint32_t tables; /* in memory */
};

/* live: files are opened through the processes that map them, and the kernel's vdso is that of this
 * process. Otherwise only files that are known to be the same are used. Returns NULL without
 * memory. */
struct symbols *symbols_new(bool live, enum name_style style);
void symbols_free(struct symbols *s);
/* Files without a build id of their own get theirs from this list, which must outlive the symbols;
 * or NULL. */
void symbols_expect(struct symbols *s, const struct buildids *ids);
/* The recording was made on the running kernel, so its vdso is that of this process. */
void symbols_use_own_vdso(struct symbols *s);

/* Returns the number of the file, the same for the same file; 0 without memory or if there are too
 * many. */
uint32_t symbols_add(struct symbols *s, const struct symbols_file *file);
/* pid has the file mapped at start..end now: opens it unless it is open. */
void symbols_open(struct symbols *s, uint32_t file, int32_t pid, uint64_t start, uint64_t end);

/* Returns a descriptor of the file, which the caller closes, or a negative number. */
int symbols_dup(struct symbols *s, uint32_t file);

/* Finds the function, or variable, that covers the byte at offset in the file. Returns false and
 * sets out->name to NULL if none is known. */
bool symbols_find(struct symbols *s, uint32_t file, uint64_t offset, struct symbol *out);
/* Returns the path of the file as it was added; NULL for file 0. */
const char *symbols_path(const struct symbols *s, uint32_t file);

bool symbols_is_data(const struct symbols *s, uint32_t file);

/* Returns the last process that had it mapped; 0: unknown. */
int32_t symbols_pid(const struct symbols *s, uint32_t file);

/* Returns the pool of names, which live as long as the symbols. */
struct string_pool *symbols_names(struct symbols *s);
void symbols_read_stats(const struct symbols *s, struct symbols_stats *out);
