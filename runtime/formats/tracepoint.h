/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tracepoint: its id, its fields, and how its payload is printed. It comes from formats_find().
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct printers;
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
	uint32_t elem_size; /* bytes per element */
	uint32_t count;	    /* elements; 0 if only the record tells */
	uint32_t flags;	    /* enum field_flags */
};

/* For formats.c. Takes over text, also on failure. trusted: it is the running kernel's. printers
 * must outlive the tracepoint. Returns NULL without memory. */
struct tracepoint *tracepoint_new(const char *key, char *text, size_t size, bool trusted,
				  struct printers *printers);
void tracepoint_free(struct tracepoint *t);
/* Parses the text, once. Everything below needs it. */
int tracepoint_parse(struct tracepoint *t, struct error *err);
/* Returns "system:name". */
const char *tracepoint_key(const struct tracepoint *t);

/* Returns the "system" of its key, valid as long as the tracepoint. */
const char *tracepoint_system(const struct tracepoint *t);
/* Returns the text of its format file. */
const char *tracepoint_text(const struct tracepoint *t, size_t *size);
/* Replaces the text: its records will have more fields than those of the kernel. Fields that were
 * returned before are no longer valid. Returns 0 or a negative errno with a message; the old text
 * then stays. Call it before an event is printed. */
int tracepoint_set_text(struct tracepoint *t, const char *text, struct error *err);

uint32_t tracepoint_id(const struct tracepoint *t);
uint32_t tracepoint_nr_fields(const struct tracepoint *t);
/* Common fields come first. Returns NULL after the last one. */
const struct field *tracepoint_field(const struct tracepoint *t, uint32_t index);
/* Returns what follows "print fmt: ", "" if the format has none. */
const char *tracepoint_print_fmt(const struct tracepoint *t);

/* Prints a payload if the generated printers cannot translate the print format. Formats of the
 * running kernel are printed by libtraceevent. It must not see untrusted text, so formats that were
 * added, and those it does not understand, are printed field by field. Returns the length; if that
 * is >= size, the text is cut. */
int tracepoint_print(struct tracepoint *t, const uint8_t *raw, uint32_t raw_size, char *buf,
		     uint32_t size);
/* Returns whether a plugin of libtraceevent prints the event. The first call loads the plugins. */
bool tracepoint_has_plugin(struct tracepoint *t);
/* The same as tracepoint_print() with the plugin. *more: the text of the print format follows. */
int tracepoint_print_plugin(struct tracepoint *t, const uint8_t *raw, uint32_t raw_size, bool *more,
			    char *buf, uint32_t size);
