/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libtraceevent does not check the offsets in a payload. Offsets and lengths have 16 bits, so it
 * gets a copy of the payload, followed by more zeros than they can reach.
 */
#include "formats/printer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "formats/addresses.h"
#include "formats/format.h"

/* The end of a field, a relative offset and a length, up to 64 KiB each, and one more to
 * terminate. */
enum { SCRATCH = 4 * FORMAT_PAYLOAD_MAX };

struct printer {
	struct tep_handle *tep; /* one per format: the ids of different formats cannot collide */
	struct tep_event *event;
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

struct printer *printer_new(const char *system, const char *text, size_t size,
			    struct addresses *symbols)
{
	struct printer *p = tame(text) ? calloc(1, sizeof(*p)) : NULL;

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
	if (tep_set_function_resolver(p->tep, resolve, p) < 0 ||
	    tep_parse_event(p->tep, text, size, system) != TEP_ERRNO__SUCCESS)
		goto fail;
	p->event = tep_get_event(p->tep, 0);
	if (!p->event || p->event->flags & (int)TEP_EVENT_FL_FAILED)
		goto fail;
	return p;
fail:
	printer_free(p);
	return NULL;
}

void printer_free(struct printer *p)
{
	if (!p)
		return;
	tep_free(p->tep);
	trace_seq_destroy(&p->seq);
	free(p->scratch);
	free(p);
}

/* The library finds the event by the payload's common_type, which may be missing in a relayed or
 * cut payload. */
static void write_type(struct printer *p)
{
	struct tep_format_field *type = tep_find_common_field(p->event, "common_type");
	uint16_t id = (uint16_t)p->event->id;

	if (type && type->size == sizeof(id))
		memcpy(p->scratch + type->offset, &id, sizeof(id));
}

size_t printer_print(struct printer *p, const uint8_t *raw, uint32_t raw_size, char *buf,
		     size_t size)
{
	struct tep_record record = {.data = p->scratch, .size = FORMAT_PAYLOAD_MAX};

	if (raw_size > FORMAT_PAYLOAD_MAX)
		raw_size = FORMAT_PAYLOAD_MAX;
	memcpy(p->scratch, raw, raw_size);
	if (raw_size < p->used)
		memset(p->scratch + raw_size, 0, p->used - raw_size);
	p->used = raw_size < sizeof(uint64_t) ? sizeof(uint64_t) : raw_size;
	write_type(p);

	trace_seq_reset(&p->seq);
	tep_print_event(p->tep, &p->seq, &record, "%s", TEP_PRINT_INFO);
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
