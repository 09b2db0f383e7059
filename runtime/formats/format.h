/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A parsed format file of tracefs: the id, the fields and the print format. Every field lies within
 * the largest payload that a record can have, and its name is a unique C identifier. Generated code
 * relies on both.
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
	char *print_fmt;      /* after "print fmt: "; "" without */
};

/* Gets only the event's name, "" if the text has none. Returns 0 or -ENOMEM. */
int format_name(const char *text, size_t size, char **name);
/* Returns 0, -EINVAL with the malformed line, or -ENOMEM. */
int format_parse(struct format *format, const char *text, size_t size, struct error *err);
/* Frees what format_parse() allocated. A zeroed struct is fine. */
void format_release(struct format *format);
