/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The USDT probes of an ELF file: places that its author marked with notes (.note.stapsdt), with
 * operands for the arguments there. Strings live as long as their struct usdt.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct error;
struct usdt;

/* A probe that was inlined, or is in the source twice, has several entries. */
struct usdt_probe {
	const char *provider, *name;
	const char *args;	   /* as in the note: "-4@%edi 8@8(%rsp)" */
	uint64_t addr, base;	   /* as in the note */
	uint64_t semaphore;	   /* as in the note; 0: none */
	uint64_t offset;	   /* in the file */
	uint64_t semaphore_offset; /* in the file */
};

/* Returns NULL with a message if the file is not readable. A file may have 0 probes. */
struct usdt *usdt_open(const char *path, struct error *err);
void usdt_free(struct usdt *u);
uint32_t usdt_count(const struct usdt *u);
const struct usdt_probe *usdt_probe(const struct usdt *u, uint32_t index);

/* Writes the fetch of argument arg (from 0) in the syntax of the kernel's uprobe_events:
 * "arg1=%di:s32". format: the text to write, with "%s" for the operand, such as
 * "path=+0(%s):string"; if it has no type, that of the note is added; NULL: the default above.
 * Returns 0, -ENOENT after the last argument, -EOPNOTSUPP with a message if the kernel cannot fetch
 * it, or -EINVAL with a message for a bad format. */
int usdt_fetch_arg(struct usdt *u, uint32_t index, uint32_t arg, const char *format, char *out,
		   size_t size, struct error *err);
