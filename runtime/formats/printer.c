/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libtraceevent does not check the offsets in a payload. Offsets and lengths have 16 bits, so it
 * gets a copy of the payload, followed by more zeros than they can reach.
 */
#include "formats/printer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "formats/addresses.h"
#include "formats/format.h"
#include "formats/tracepoint.h"

/* The end of a field, a relative offset and a length, up to 64 KiB each, and one more to
 * terminate. */
enum { SCRATCH = 4 * FORMAT_PAYLOAD_MAX };

struct printer {
	struct tep_handle *tep;
	struct tep_plugin_list *plugins;
	int nr_added; /* by printer_add_fields(), which are numbered here: the ids of a recording
		       * need not be unique */
	struct trace_seq seq;
	struct addresses *symbols;
	uint8_t *scratch; /* zeros after used */
	uint32_t used;
};

static char *resolve(void *priv, unsigned long long *addr, char **module)
{
	struct printer *p = priv;
	uint64_t start;
	const char *name = addresses_find(p->symbols, *addr, &start);

	*module = NULL;
	if (name)
		*addr = start;
	return (char *)name;
}

/* Returns whether the text calls no function whose count libtraceevent takes unchecked from the
 * payload. */
static bool tame(const char *text)
{
	return !strstr(text, "__print_hex") && !strstr(text, "__print_array");
}

struct printer *printer_new(struct addresses *symbols, bool plugins)
{
	struct printer *p = calloc(1, sizeof(*p));
	const char *dir = getenv("TRACEEVENT_PLUGIN_DIR");

	if (!p)
		return NULL;
	p->symbols = symbols;
	trace_seq_init(&p->seq);
	p->scratch = calloc(1, SCRATCH);
	p->tep = tep_alloc();
	if (!p->scratch || !p->tep || p->seq.state != TRACE_SEQ__GOOD)
		goto fail;
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(p->tep, sizeof(long));
	if (tep_set_function_resolver(p->tep, resolve, p) < 0)
		goto fail;
	if (plugins && !(dir && !*dir))
		p->plugins = tep_load_plugins(p->tep);
	return p;
fail:
	printer_free(p);
	return NULL;
}

void printer_free(struct printer *p)
{
	if (!p)
		return;
	if (p->plugins)
		tep_unload_plugins(p->plugins, p->tep);
	tep_free(p->tep);
	trace_seq_destroy(&p->seq);
	free(p->scratch);
	free(p);
}

struct tep_event *printer_add_text(struct printer *p, const char *system, uint32_t id,
				   const char *text, size_t size)
{
	struct tep_event *event;

	if (!tame(text) || tep_parse_event(p->tep, text, size, system) != TEP_ERRNO__SUCCESS)
		return NULL;
	event = tep_find_event(p->tep, (int)id);
	return event && !(event->flags & (int)TEP_EVENT_FL_FAILED) ? event : NULL;
}

/* Writes the declaration of a field as the kernel would, for the size that it has. */
static void declare(FILE *out, const struct field *f)
{
	static const char *const types[] = {[1] = "char", [2] = "short", [4] = "int", [8] = "long"};
	const char *type = f->elem_size <= 8 && types[f->elem_size] ? types[f->elem_size] : "char";

	fprintf(out, "\tfield:");
	if (f->flags & FIELD_DYNAMIC)
		fprintf(out, "%s %s[] %s", f->flags & FIELD_RELATIVE ? "__rel_loc" : "__data_loc",
			type, f->name);
	else if (f->flags & FIELD_ARRAY)
		fprintf(out, "%s %s[%u]", type, f->name, f->count);
	else
		fprintf(out, "%s %s", type, f->name);
	fprintf(out, ";\toffset:%u;\tsize:%u;\tsigned:%d;\n", f->offset, f->size,
		(f->flags & FIELD_SIGNED) != 0);
}

struct tep_event *printer_add_fields(struct printer *p, const char *system, const char *name,
				     const struct field *fields, uint32_t nr_fields)
{
	struct tep_event *event;
	int id = p->nr_added + 1;
	bool common = true;
	char *text;
	size_t size;
	FILE *out;

	if (!p->plugins || id > UINT16_MAX)
		return NULL;
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	fprintf(out, "name: %s\nID: %d\nformat:\n", name, id);
	for (uint32_t i = 0; i < nr_fields; i++) {
		if (common && !(fields[i].flags & FIELD_COMMON))
			fputc('\n', out); /* it ends the common fields */
		common = fields[i].flags & FIELD_COMMON;
		declare(out, &fields[i]);
	}
	fprintf(out, "%s\nprint fmt: \"\"\n", common ? "\n" : "");
	if (fclose(out))
		return NULL;
	p->nr_added = id;
	event = tep_parse_event(p->tep, text, size, system) == TEP_ERRNO__SUCCESS
			? tep_find_event(p->tep, id)
			: NULL;
	free(text);
	return event && event->handler ? event : NULL;
}

/* The library finds the event by the payload's common_type, which may be missing in a relayed or
 * cut payload. */
static void write_type(struct printer *p, const struct tep_event *event)
{
	struct tep_format_field *type =
		tep_find_common_field((struct tep_event *)event, "common_type");
	uint16_t id = (uint16_t)event->id;

	if (type && type->size == sizeof(id))
		memcpy(p->scratch + type->offset, &id, sizeof(id));
}

size_t printer_print(struct printer *p, const struct tep_event *event, const uint8_t *raw,
		     uint32_t raw_size, bool *more, char *buf, size_t size)
{
	struct tep_record record = {.data = p->scratch, .size = FORMAT_PAYLOAD_MAX};

	if (raw_size > FORMAT_PAYLOAD_MAX)
		raw_size = FORMAT_PAYLOAD_MAX;
	memcpy(p->scratch, raw, raw_size);
	if (raw_size < p->used)
		memset(p->scratch + raw_size, 0, p->used - raw_size);
	p->used = raw_size < sizeof(uint64_t) ? sizeof(uint64_t) : raw_size;
	write_type(p, event);

	trace_seq_reset(&p->seq);
	*more = false;
	if (event->handler) {
		record.size = (int)p->used; /* the payload's end is up to the plugin */
		*more = event->handler(&p->seq, &record, (struct tep_event *)event,
				       event->context) > 0;
	} else {
		tep_print_event(p->tep, &p->seq, &record, "%s", TEP_PRINT_INFO);
	}
	trace_seq_terminate(&p->seq);
	if (p->seq.state != TRACE_SEQ__GOOD) {
		/* An allocation failed: this line is lost, the next one starts afresh. */
		trace_seq_destroy(&p->seq);
		trace_seq_init(&p->seq);
		if (size)
			buf[0] = '\0';
		return 0;
	}
	if (size) {
		size_t n = p->seq.len < size ? p->seq.len : size - 1;

		memcpy(buf, p->seq.buffer, n);
		buf[n] = '\0';
	}
	return p->seq.len;
}
