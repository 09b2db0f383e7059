/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoint formats: fields by name, as the running kernel's tracefs or a recording describes
 * them. A format is read and parsed only when it is asked for.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct error;
struct formats;
struct tracepoint;

enum field_flags {
	FIELD_SIGNED = 1,
	FIELD_ARRAY = 2,    /* fixed array: count elements of elem_size */
	FIELD_DYNAMIC = 4,  /* __data_loc: u32 at offset = length << 16 | offset in the record */
	FIELD_RELATIVE = 8, /* with DYNAMIC: __rel_loc, offset counts from the end of the u32 */
	FIELD_STRING = 16,  /* characters up to a NUL */
	FIELD_POINTER = 32, /* an address */
	FIELD_COMMON = 64   /* one of common_* */
};

struct field {
	const char *name;
	const char *type;   /* as the format spells it */
	uint32_t offset;    /* bytes from the start of the payload */
	uint32_t size;	    /* bytes at offset (4 for dynamic fields) */
	uint32_t elem_size; /* bytes of one element */
	uint32_t count;	    /* elements; 0 where only the record knows */
	uint32_t flags;	    /* enum field_flags */
};

/* Formats of the running kernel. NULL with a message where tracefs is not mounted (it is not
 * mounted here either: that is the user's or the Makefile's business) or not readable. */
struct formats *formats_open_tracefs(struct error *err);
/* An empty set, to be filled from a recording. */
struct formats *formats_new(void);
void formats_free(struct formats *f);

/* Adds the text of a format file; the id in it is what common_type says in that recording. A text
 * that does not parse is kept: its fields are not available, tracepoint_find() says why. -EEXIST
 * where the event is there already (the first text stays), -EINVAL without a usable name. */
int formats_add_text(struct formats *f, const char *system, const char *text, size_t size);
/* The kallsyms of a recording, for formats that print %pS or %ps. */
int formats_add_kallsyms(struct formats *f, const char *text, size_t size);
/* The printk_formats of a recording, for formats that print %s of a kernel address. */
int formats_add_strings(struct formats *f, const char *text, size_t size);
/* The recording is of the kernel that runs here: its symbols are those of /proc/kallsyms, if it
 * brought none. The symbol name was at addr then, see addresses_anchor(). 0 or -ENOMEM. */
int formats_use_own_symbols(struct formats *f);
void formats_anchor_symbols(struct formats *f, const char *name, uint64_t addr);
/* The kernel symbol that covers addr, its address in *start; NULL where there is none. The running
 * kernel's symbols are read at the first question. The name lives as long as f. */
const char *formats_symbol(struct formats *f, uint64_t addr, uint64_t *start);
/* The string at a kernel address, NULL where none is known. Lives as long as f. */
const char *formats_string(struct formats *f, uint64_t addr);

/* All "system:name", sorted, one a line; to be freed by the caller with free(). */
char *formats_names(struct formats *f);

/* NULL with errno and a message that holds the nearest name. The result lives as long as f. */
struct tracepoint *tracepoint_find(struct formats *f, const char *system, const char *name,
				   struct error *err);
uint32_t tracepoint_id(const struct tracepoint *t);
uint32_t tracepoint_nr_fields(const struct tracepoint *t);
/* Common fields come first. NULL beyond the last. */
const struct field *tracepoint_field(const struct tracepoint *t, uint32_t index);
/* The text behind "print fmt: ", "" where the format has none. */
const char *tracepoint_print_fmt(const struct tracepoint *t);

/* The fall-back for print formats that the generated printers do not translate: formats of the
 * running kernel are printed by libtraceevent. It is not fit for texts that are not trusted, so
 * formats that were added, and those it does not understand, are printed field by field. Returns
 * the length, which may be >= size (then it is cut). */
int tracepoint_print(struct tracepoint *t, const uint8_t *raw, uint32_t raw_size, char *buf,
		     uint32_t size);
