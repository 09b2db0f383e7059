/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stubs through which a file calls functions of others: they have no symbols of their own, but each
 * jumps to where the dynamic linker puts the address of a function that has a name. x86-64 only.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <libelf.h>

struct plt_stub {
	uint64_t addr;
	uint32_t size;
	uint32_t name; /* of the function, in the strings of the dynamic linker's table */
};

/* The stubs of elf, to be freed; NULL without any. dynsym: its table for the dynamic linker. */
struct plt_stub *plt_read(Elf *elf, Elf_Scn *dynsym, size_t *count);
