/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Texts at kernel addresses: symbols, as listed in /proc/kallsyms, and strings that kernel code
 * refers to in events, as listed in printk_formats of tracefs. A table is read and sorted by its
 * first lookup: most runs need none.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct addresses;

enum addresses_kind {
	ADDRESSES_SYMBOLS, /* "ADDRESS TYPE NAME[\t[MODULE]]" */
	ADDRESSES_STRINGS, /* "ADDRESS : \"TEXT\"" */
};

/* path: the running kernel's file; NULL: addresses_set_text() will set the text. */
struct addresses *addresses_new(enum addresses_kind kind, const char *path);
void addresses_free(struct addresses *a);
/* Copies the text for later lookups. Returns 0 or -ENOMEM. */
int addresses_set_text(struct addresses *a, const char *text, size_t size);
/* The same for a table that was used: its texts stay valid. -ENOSPC: not so often. */
int addresses_replace_text(struct addresses *a, const char *text, size_t size);

/* Lookups read this file, unless a text was set. Returns 0 or -ENOMEM. */
int addresses_use(struct addresses *a, const char *path);
/* Reads the table again if an address is not in it and this file, the kernel's list of modules, has
 * changed. */
void addresses_watch(struct addresses *a, const char *path);
/* The symbol name was at addr when the addresses to look up were recorded: the kernel may have been
 * rebooted since and be at another address. To be called before the first lookup. */
void addresses_anchor(struct addresses *a, const char *name, uint64_t addr);

/* Returns whether no line of the text has an address: the kernel hides them. */
bool addresses_hidden(const struct addresses *a);
uint64_t addresses_bytes(const struct addresses *a);

/* Returns the symbol that covers addr, or the string at addr, and its start; NULL if there is none
 * or the file is not readable. Of several symbols at one address it is the first, as printed by the
 * kernel's %pS. The text lives until the table is freed or set again. */
const char *addresses_find(struct addresses *a, uint64_t addr, uint64_t *start);
/* The same for the frame of a stack: of several symbols at one address it is the last, as printed
 * by perf. If the symbol belongs to a module, *module becomes "[NAME]". */
const char *addresses_find_frame(struct addresses *a, uint64_t addr, uint64_t *start,
				 const char **module);
