/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Texts at kernel addresses: symbols, as /proc/kallsyms lists them, and the strings that kernel
 * code refers to in events, as tracefs' printk_formats does. A table is read and sorted at the
 * first question: most runs never ask.
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

/* path: the running kernel's file; NULL where only addresses_set_text() gives a text. */
struct addresses *addresses_new(enum addresses_kind kind, const char *path);
void addresses_free(struct addresses *a);
/* Takes a copy of the text; later questions are answered from it. 0 or -ENOMEM. */
int addresses_set_text(struct addresses *a, const char *text, size_t size);

/* Answers are those of this file, unless a text was set. 0 or -ENOMEM. */
int addresses_use(struct addresses *a, const char *path);
/* The table is read again when an address is not in it and this file has changed: the kernel's list
 * of modules. */
void addresses_watch(struct addresses *a, const char *path);
/* The symbol name was at addr when the addresses were taken that are asked for: the kernel may have
 * been started since, and lie elsewhere. Before the first question. */
void addresses_anchor(struct addresses *a, const char *name, uint64_t addr);

/* Whether a text was read in which no line has an address: the kernel hides them. */
bool addresses_hidden(const struct addresses *a);
uint64_t addresses_bytes(const struct addresses *a);

/* The symbol that covers addr, or the string at it, and where it starts; NULL where there is none
 * or the file may not be read. Of several at one address the first, which the kernel's %pS prints.
 * The text lives until the table is freed or set anew. */
const char *addresses_find(struct addresses *a, uint64_t addr, uint64_t *start);
/* The symbol of a stack's frame: of several at one address the last, which perf prints. module
 * becomes "[NAME]" for a symbol of a module, and is left as it is for others. */
const char *addresses_find_frame(struct addresses *a, uint64_t addr, uint64_t *start,
				 const char **module);
