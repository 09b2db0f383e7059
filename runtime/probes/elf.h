/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ELF files for probes: functions and addresses as offsets in the file. Addresses are converted by
 * the program headers, because the kernel maps by them; sections may be wrong or missing. Files are
 * not trusted.
 */
#pragma once
#include <stdint.h>

struct Elf;
struct elf_file;
struct error;

/* Returns NULL with a message if the file is missing, not readable or not an ELF file. */
struct elf_file *elf_file_open(const char *path, struct error *err);
void elf_file_free(struct elf_file *f);

/* Gets the offset in the file of the byte at `offset` of a function. A name stands for its default
 * version ("malloc" for "malloc@@GLIBC_2.2.5"); a C++ or Rust name may be as in the file or as in
 * the source, with or without parameters. Returns -ENOENT with the nearest name, or -EINVAL if it
 * is not one place: several functions of that name, an indirect function, or an offset beyond the
 * end. */
int elf_file_function(struct elf_file *f, const char *name, uint64_t offset, uint64_t *file_offset,
		      struct error *err);
/* Gets the address of a symbol that is defined in the file, a function or not. Returns -ENOENT
 * without a message. */
int elf_file_address(struct elf_file *f, const char *name, uint64_t *addr);
/* Gets the offset in the file of an address. executable: only in code. Returns -ENOENT if no
 * segment contains it. */
int elf_file_offset(struct elf_file *f, uint64_t addr, int32_t executable, uint64_t *offset);

/* Returns whether the Go compiler or linker made the file. */
int32_t elf_file_is_go(struct elf_file *f);

/* Returns libelf's handle, for readers of other sections. It lives as long as f. */
struct Elf *elf_file_handle(struct elf_file *f);
