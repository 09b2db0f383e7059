/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ELF files as probes need them: functions and addresses as places in the file. Addresses become
 * offsets by the program headers, which is what the kernel maps by; sections may lie or be missing.
 * Files are not trusted.
 */
#pragma once
#include <stdint.h>

struct Elf;
struct elf_file;
struct error;

/* NULL with a message: not there, not readable, no ELF file. */
struct elf_file *elf_file_open(const char *path, struct error *err);
void elf_file_free(struct elf_file *f);

/* Offset in the file of the byte `plus` behind the function's start. A name stands for its default
 * version ("malloc" for "malloc@@GLIBC_2.2.5"); one of C++ or Rust may be as in the file or as in
 * the source, with parameters or without. -ENOENT with the nearest name; -EINVAL where the place is
 * not one: several functions of that name, an indirect function, beyond its end. */
int elf_file_function(struct elf_file *f, const char *name, uint64_t offset, uint64_t *file_offset,
		      struct error *err);
/* Address of a symbol that is defined in the file, function or not. -ENOENT without a message. */
int elf_file_address(struct elf_file *f, const char *name, uint64_t *addr);
/* Offset in the file of an address; executable: of code. -ENOENT where no segment has it. */
int elf_file_offset(struct elf_file *f, uint64_t addr, int32_t executable, uint64_t *offset);

/* libelf's handle, for readers of other sections. Lives as long as f. */
struct Elf *elf_file_handle(struct elf_file *f);
