/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One format file of tracefs, parsed: the id, the fields and the text of the print format.
 * Every field lies within the largest payload a record can carry, and has a name that is a C
 * identifier and unique: code that is generated from the fields may rely on both.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct error;
struct field;

enum { FORMAT_PAYLOAD_MAX = 65536 };

struct format {
	uint32_t id;
	uint32_t nr_fields;
	char *name;
	struct field *fields; /* common_* first */
	char *print_fmt;      /* behind "print fmt: ", "" without */
};

/* The event's name alone, "" where the text has none. Returns 0 or -ENOMEM. */
int format_name(const char *text, size_t size, char **name);
/* Returns 0, -EINVAL with the line that is wrong, or -ENOMEM. */
int format_parse(struct format *format, const char *text, size_t size, struct error *err);
/* Frees what format_parse() filled; a zeroed struct is fine. */
void format_release(struct format *format);
