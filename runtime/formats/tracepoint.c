/* SPDX-License-Identifier: GPL-2.0-only */
#include "formats/tracepoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "formats/format.h"
#include "formats/payload.h"
#include "formats/printer.h"

struct tracepoint {
	char *key;    /* "system:name" */
	char *system; /* of it */
	char *text;
	size_t size;
	struct format format;
	bool parsed;
	bool trusted;				/* the running kernel's own text */
	bool added, plugin_added;		/* to the printers */
	struct tep_event *event, *plugin_event; /* NULL: it was not accepted */
	struct printers *printers;
};

struct tracepoint *tracepoint_new(const char *key, char *text, size_t size, bool trusted,
				  struct printers *printers)
{
	struct tracepoint *t = calloc(1, sizeof(*t));

	if (!t) {
		free(text);
		return NULL;
	}
	t->text = text;
	t->size = size;
	t->trusted = trusted;
	t->printers = printers;
	t->key = strdup(key);
	t->system = strndup(key, strcspn(key, ":"));
	if (!t->key || !t->system) {
		tracepoint_free(t);
		return NULL;
	}
	return t;
}

void tracepoint_free(struct tracepoint *t)
{
	if (!t)
		return;
	format_release(&t->format);
	free(t->key);
	free(t->system);
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

const char *tracepoint_system(const struct tracepoint *t)
{
	return t->system;
}

const char *tracepoint_text(const struct tracepoint *t, size_t *size)
{
	*size = t->size;
	return t->text;
}

int tracepoint_set_text(struct tracepoint *t, const char *text, struct error *err)
{
	struct format format = {0};
	struct error why = {0};
	char *copy = strdup(text);
	int ret;

	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	ret = format_parse(&format, copy, strlen(copy), &why);
	if (ret) {
		free(copy);
		format_release(&format);
		return error_set(err, ret, "event '%s': %s", t->key, why.text);
	}
	format_release(&t->format);
	free(t->text);
	t->format = format;
	t->text = copy;
	t->size = strlen(copy);
	t->parsed = true;
	return 0;
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

/* The key without the event's name. The caller frees it. */
static char *system_of(const struct tracepoint *t)
{
	return strndup(t->key, strcspn(t->key, ":"));
}

static void add_to_printer(struct tracepoint *t)
{
	struct printers *printers = t->printers;
	char *system = system_of(t);

	t->added = true;
	if (!printers->of_formats)
		printers->of_formats = printer_new(printers->symbols, false);
	if (system && printers->of_formats)
		t->event = printer_add_text(printers->of_formats, system, t->format.id, t->text,
					    t->size);
	free(system);
}

int tracepoint_print(struct tracepoint *t, const uint8_t *raw, uint32_t raw_size, char *buf,
		     uint32_t size)
{
	bool more;

	if (t->trusted && !t->added)
		add_to_printer(t);
	return t->event ? (int)printer_print(t->printers->of_formats, t->event, raw, raw_size,
					     &more, buf, size)
			: (int)payload_print(t->format.fields, t->format.nr_fields, raw, raw_size,
					     buf, size);
}

bool tracepoint_has_plugin(struct tracepoint *t)
{
	struct printers *printers = t->printers;
	char *system;

	if (t->plugin_added)
		return t->plugin_event != NULL;
	t->plugin_added = true;
	if (!printers->of_plugins)
		printers->of_plugins = printer_new(printers->symbols, true);
	system = system_of(t);
	/* The library's plugin writes kvm_emulate_insn's bytes, as many as the payload says, into
	 * an array of 15: the kernel's are never more, a recording's can be. */
	if (system && printers->of_plugins &&
	    (t->trusted || strcmp(t->key, "kvm:kvm_emulate_insn") != 0))
		t->plugin_event = printer_add_fields(printers->of_plugins, system, t->format.name,
						     t->format.fields, t->format.nr_fields);
	free(system);
	return t->plugin_event != NULL;
}

int tracepoint_print_plugin(struct tracepoint *t, const uint8_t *raw, uint32_t raw_size, bool *more,
			    char *buf, uint32_t size)
{
	return (int)printer_print(t->printers->of_plugins, t->plugin_event, raw, raw_size, more,
				  buf, size);
}
