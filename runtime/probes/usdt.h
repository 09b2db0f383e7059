/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * USDT probes of an ELF file: places its author marked by notes (.note.stapsdt), with the operands
 * that hold the arguments there. Strings live as long as the struct usdt they are of.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct error;
struct usdt;

/* A probe that was inlined, or is written twice, has several entries. */
struct usdt_probe {
	const char *provider, *name;
	const char *args;	   /* as the note has them: "-4@%edi 8@8(%rsp)" */
	uint64_t addr, base;	   /* as the note has them */
	uint64_t semaphore;	   /* as the note has it; 0: none */
	uint64_t offset;	   /* in the file */
	uint64_t semaphore_offset; /* in the file */
};

/* NULL with a message where the file cannot be read. A file without probes has 0 of them. */
struct usdt *usdt_open(const char *path, struct error *err);
void usdt_free(struct usdt *u);
uint32_t usdt_count(const struct usdt *u);
const struct usdt_probe *usdt_probe(const struct usdt *u, uint32_t index);

/* Writes what fetches argument number arg (from 0) as the kernel's uprobe_events has it:
 * "arg1=%di:s32". format: what to write instead, with the operand in place of its "%s", such as
 * "path=+0(%s):string"; where it says no type, that of the note is added; NULL: as above. Returns
 * 0; -ENOENT behind the last argument; -EOPNOTSUPP with a message where the kernel cannot fetch it;
 * -EINVAL with a message for a bad format. */
int usdt_fetch_arg(struct usdt *u, uint32_t index, uint32_t arg, const char *format, char *out,
		   size_t size, struct error *err);
