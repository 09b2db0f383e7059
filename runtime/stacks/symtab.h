/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of one ELF file, by the addresses it was linked for. Names stay in the file and
 * are read when asked for: a table takes 20 bytes for a function whatever its name is.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <libelf.h>

struct symtab;

/* Where names are read from: a file descriptor, or memory (fd < 0). */
struct symtab_names {
	int fd;
	bool owned; /* symtab_free() closes the descriptor, or frees the memory */
	char *memory;
	size_t size;
};

/* A table with the segments of elf, without functions yet. NULL without memory. */
struct symtab *symtab_new(Elf *elf);
void symtab_free(struct symtab *t);

/* Adds the functions of elf, which is the file itself or one with its debug information: up to
 * two. 1: it has a full table, 0: at most one for the dynamic linker; negative: no memory. Takes
 * over what names says it may, in any case. */
int symtab_add(struct symtab *t, Elf *elf, const struct symtab_names *names);
/* To be called once, after the last symtab_add(). */
int symtab_finish(struct symtab *t);

uint64_t symtab_bytes(const struct symtab *t);

/* The function that covers the byte at this offset in the file, the innermost one. Its name, with
 * "@plt" for a stub, is the caller's until the next call; offset is how far behind its start the
 * byte is. NULL: none does. */
char *symtab_find(struct symtab *t, uint64_t file_offset, uint64_t *offset);
