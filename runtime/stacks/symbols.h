/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Symbols of user space: the files that processes have mapped, and the functions at offsets in
 * them. A file is opened as soon as a process is known to have it mapped, because neither may be
 * there later; its symbols are read at the first question. Descriptors, tables and answers are
 * bounded: what was not used for longest goes first.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "stacks/demangle.h"

struct buildids;
struct string_pool;
struct symbols;

/* What is known of a mapped file: its inode, or its build id (inode 0). */
struct symbols_file {
	const char *path; /* as the process had it, may end in " (deleted)"; or "[vdso]" */
	uint32_t maj, min;
	uint64_t inode;
	const uint8_t *build_id;
	uint32_t build_id_size;
};

struct symbol {
	const char *name; /* NULL: none there. Lives as long as the symbols. */
	uint64_t offset;  /* bytes from the function's start to what was asked for */
};

struct symbols_stats {
	uint64_t bytes;	 /* of tables and names */
	uint32_t files;	 /* known */
	uint32_t tables; /* in memory */
};

/* live: files are opened through the processes that map them, and the kernel's vdso is ours;
 * otherwise only what is known to be the same file is. NULL without memory. */
struct symbols *symbols_new(bool live, enum name_style style);
void symbols_free(struct symbols *s);
/* Files that are told without a build id are those of the list, which outlives this; NULL: none. */
void symbols_expect(struct symbols *s, const struct buildids *ids);
/* The recording is of the kernel that runs here: its vdso is ours. */
void symbols_use_own_vdso(struct symbols *s);

/* The number of the file, the same for the same file; 0: no memory, or there are too many. */
uint32_t symbols_add(struct symbols *s, const struct symbols_file *file);
/* pid has the file mapped at start..end now: opens it unless it is already. */
void symbols_open(struct symbols *s, uint32_t file, int32_t pid, uint64_t start, uint64_t end);

/* A descriptor for the file, which the caller closes; negative where it cannot be opened. */
int symbols_dup(struct symbols *s, uint32_t file);

/* The function that covers the byte at offset in the file. False, out->name NULL: none is known. */
bool symbols_find(struct symbols *s, uint32_t file, uint64_t offset, struct symbol *out);
/* Path of the file as it was added; NULL for no file. */
const char *symbols_path(const struct symbols *s, uint32_t file);

/* The process that had it mapped last; 0: none is known. */
int32_t symbols_pid(const struct symbols *s, uint32_t file);

/* Where the names are kept that live as long as the symbols. */
struct string_pool *symbols_names(struct symbols *s);
void symbols_read_stats(const struct symbols *s, struct symbols_stats *out);
