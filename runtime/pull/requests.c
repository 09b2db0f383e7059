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

/* Returns the tracepoint of the event of a stream that is the n-th of this name, from 0; NULL if
 * there is none. */
static struct tracepoint *nth_named(struct source *stream, const char *name, uint32_t n)
{
	const struct source_info *info = &stream->info;

	for (uint32_t i = 0; i < info->nr_events; i++)
		if (info->events[i].type == PERF_TYPE_TRACEPOINT &&
		    !strcmp(info->events[i].name, name) && !n--)
			return formats_by_id(stream->ops->formats(stream, NULL),
					     info->events[i].config);
	return NULL;
}

/* Returns the same tracepoint of another stream. A name may occur several times: a USDT probe may
 * be at several places. */
static struct tracepoint *counterpart(const struct source *first, struct source *stream,
				      uint64_t config)
{
	const struct source_info *info = &first->info;
	uint32_t at = 0, n = 0;

	while (at < info->nr_events &&
	       (info->events[at].type != PERF_TYPE_TRACEPOINT || info->events[at].config != config))
		at++;
	if (at == info->nr_events)
		return NULL;
	for (uint32_t i = 0; i < at; i++)
		n += !strcmp(info->events[i].name, info->events[at].name);
	return nth_named(stream, info->events[at].name, n);
}

/* Finds an event of the first stream in another, whose ids may be others, and checks that its
 * fields are still the same. */
static int find_again(struct source *first, struct source *stream, struct event_request *req,
		      struct error *err)
{
	struct tracepoint *was, *is;
	const char *change;

	if (req->attr.type != PERF_TYPE_TRACEPOINT || req->record)
		return 0;
	was = formats_by_id(first->ops->formats(first, NULL), req->attr.config);
	is = counterpart(first, stream, req->attr.config);
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
		struct event_request req = r->list[i]; /* with the ids of the first stream */

		ret = find_again(first, stream, &req, err);
		if (!ret)
			ret = stream->ops->add_event(stream, &req, err);
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
