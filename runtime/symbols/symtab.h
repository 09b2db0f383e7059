/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of an ELF file, or its variables, by the addresses it was linked for. Names stay in
 * the file and are read on demand: a function takes 20 bytes whatever its name.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <libelf.h>

struct symtab;

/* The source of names: a file descriptor, or memory (fd < 0). */
struct symtab_names {
	int fd;
	bool owned; /* symtab_free() closes the descriptor, or frees the memory */
	char *memory;
	size_t size;
};

/* Returns a table with the segments of elf, but no functions yet; NULL without memory. data: it is
 * for variables instead, and offsets may be beyond the file (.bss). */
struct symtab *symtab_new(Elf *elf, bool data);
void symtab_free(struct symtab *t);

/* Adds the functions of elf, the file itself or its debug file; at most two files. Returns 1 if it
 * has a full table, 0 if it has at most one for the dynamic linker, or a negative errno without
 * memory. Takes over names if it is `owned`, in any case. */
int symtab_add(struct symtab *t, Elf *elf, const struct symtab_names *names);
/* To be called once, after the last symtab_add(). */
int symtab_finish(struct symtab *t);

uint64_t symtab_bytes(const struct symtab *t);

/* Finds the innermost function that covers the byte at this offset in the file. Returns its name,
 * with "@plt" for a stub, and the byte's offset from its start; NULL if there is none. The caller
 * may change the name, which is valid until the next call. */
char *symtab_find(struct symtab *t, uint64_t file_offset, uint64_t *offset);
