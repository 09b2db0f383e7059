/* SPDX-License-Identifier: GPL-2.0-only */
#include "formats/tracepoint.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "formats/format.h"
#include "formats/payload.h"
#include "formats/printer.h"

struct tracepoint {
	char *key; /* "system:name" */
	char *text;
	size_t size;
	struct format format;
	bool parsed;
	bool trusted; /* the running kernel's own text */
	bool no_printer;
	struct printer *printer; /* made by the first tracepoint_print() */
	struct addresses *symbols;
};

struct tracepoint *tracepoint_new(const char *key, char *text, size_t size, bool trusted,
				  struct addresses *symbols)
{
	struct tracepoint *t = calloc(1, sizeof(*t));

	if (!t) {
		free(text);
		return NULL;
	}
	t->text = text;
	t->size = size;
	t->trusted = trusted;
	t->symbols = symbols;
	t->key = strdup(key);
	if (!t->key) {
		tracepoint_free(t);
		return NULL;
	}
	return t;
}

void tracepoint_free(struct tracepoint *t)
{
	if (!t)
		return;
	printer_free(t->printer);
	format_release(&t->format);
	free(t->key);
	free(t->text);
	free(t);
}

int tracepoint_parse(struct tracepoint *t, struct error *err)
{
	struct error why = {0};
	int ret;

	if (t->parsed)
		return 0;
	ret = format_parse(&t->format, t->text, t->size, &why);
	if (ret)
		return error_set(err, ret, "event '%s': %s", t->key, why.text);
	t->parsed = true;
	return 0;
}

const char *tracepoint_key(const struct tracepoint *t)
{
	return t->key;
}

uint32_t tracepoint_id(const struct tracepoint *t)
{
	return t->format.id;
}

uint32_t tracepoint_nr_fields(const struct tracepoint *t)
{
	return t->format.nr_fields;
}

const struct field *tracepoint_field(const struct tracepoint *t, uint32_t index)
{
	return index < t->format.nr_fields ? &t->format.fields[index] : NULL;
}

const char *tracepoint_print_fmt(const struct tracepoint *t)
{
	return t->format.print_fmt;
}

int tracepoint_print(struct tracepoint *t, const uint8_t *raw, uint32_t raw_size, char *buf,
		     uint32_t size)
{
	if (t->trusted && !t->printer && !t->no_printer) {
		char *system = strndup(t->key, strcspn(t->key, ":"));

		t->printer = system ? printer_new(system, t->text, t->size, t->symbols) : NULL;
		t->no_printer = !t->printer;
		free(system);
	}
	return t->printer ? (int)printer_print(t->printer, raw, raw_size, buf, size)
			  : (int)payload_print(t->format.fields, t->format.nr_fields, raw, raw_size,
					       buf, size);
}
