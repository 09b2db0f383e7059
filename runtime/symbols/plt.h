/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stubs through which a file calls functions of other files. They have no symbols, but each
 * jumps through a slot that the dynamic linker fills with the address of a named function. x86-64
 * only.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <libelf.h>

struct plt_stub {
	uint64_t addr;
	uint32_t size;
	uint32_t name; /* of the function, in the string table of dynsym */
};

/* Returns the stubs of elf, which the caller frees; NULL if there are none. dynsym: its symbol
 * table for the dynamic linker. */
struct plt_stub *plt_read(Elf *elf, Elf_Scn *dynsym, size_t *count);
