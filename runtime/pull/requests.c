/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/requests.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "decode/decoder.h"
#include "error.h"
#include "event_request.h"
#include "formats/formats.h"
#include "formats/tracepoint.h"
#include "source.h"

static const char *field_change(struct tracepoint *was, struct tracepoint *is)
{
	uint32_t n = tracepoint_nr_fields(was);

	if (n != tracepoint_nr_fields(is))
		return "the number of fields";
	for (uint32_t i = 0; i < n; i++) {
		const struct field *a = tracepoint_field(was, i), *b = tracepoint_field(is, i);

		if (strcmp(a->name, b->name) || a->offset != b->offset || a->size != b->size ||
		    a->flags != b->flags)
			return a->name;
	}
	return NULL;
}

/* Finds an event of the first stream in another, whose ids may be others, and checks that its
 * fields are still the same. */
static int find_again(struct source *first, struct source *stream, struct event_request *req,
		      struct error *err)
{
	struct formats *were = first->ops->formats(first, NULL);
	struct formats *are = stream->ops->formats(stream, NULL);
	struct tracepoint *was, *is;
	const char *change, *colon;
	char system[128];

	if (req->attr.type != PERF_TYPE_TRACEPOINT || req->record)
		return 0;
	colon = strchr(req->name, ':');
	if (!colon || (size_t)(colon - req->name) >= sizeof(system))
		return 0;
	memcpy(system, req->name, colon - req->name);
	system[colon - req->name] = '\0';
	was = formats_find(were, system, colon + 1, NULL);
	is = formats_find(are, system, colon + 1, NULL);
	if (!was || !is)
		return error_set(err, -ENOENT, "it no longer sends %s", req->name);
	change = field_change(was, is);
	if (change)
		return error_set(err, -EINVAL, "%s has changed there (%s)", req->name, change);
	req->attr.config = tracepoint_id(is);
	return 0;
}

int requests_give(struct requests *r, struct source *first, struct source *stream,
		  struct error *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < r->n && !ret; i++) {
		ret = find_again(first, stream, &r->list[i], err);
		if (!ret)
			ret = stream->ops->add_event(stream, &r->list[i], err);
	}
	return ret ? ret : decoder_check(stream->decoder, err);
}

int requests_add(struct requests *r, const struct event_request *req, struct error *err)
{
	struct event_request *grown = reallocarray(r->list, r->n + 1, sizeof(*grown));

	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	r->list = grown;
	if (event_request_copy(&grown[r->n], req))
		return error_set(err, -ENOMEM, "out of memory");
	r->n++;
	return 0;
}

void requests_clear(struct requests *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		event_request_clear(&r->list[i]);
	free(r->list);
}
