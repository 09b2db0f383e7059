/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/pushed.h"
#include <errno.h>
#include <stdlib.h>
#include "decode/decoder.h"
#include "error.h"
#include "formats/formats.h"
#include "formats/tracepoint.h"
#include "push/push_clock.h"
#include "source.h"
#include "wire/preamble.h"

int pushed_add(struct pushed *p, const struct event_request *req, struct error *err)
{
	struct event_request *grown = reallocarray(p->requests, p->nr_requests + 1, sizeof(*grown));

	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	p->requests = grown;
	if (event_request_copy(&grown[p->nr_requests], req))
		return error_set(err, -ENOMEM, "out of memory");
	p->nr_requests++;
	return 0;
}

void pushed_clear(struct pushed *p)
{
	for (uint32_t i = 0; i < p->nr_requests; i++)
		event_request_clear(&p->requests[i]);
	free(p->requests);
	free(p->attrs);
	free(p->places);
}

/* Returns the pushed event that the samples of an attribute are; NULL: none. */
static const struct event_request *request_of(const struct pushed *p, int index)
{
	for (uint32_t i = 0; i < p->nr_requests; i++)
		if (decoder_has_class(p->source->decoder, index, p->requests[i].class))
			return &p->requests[i];
	return NULL;
}

int pushed_list(struct pushed *p, struct error *err)
{
	p->decoder = p->source->decoder;
	p->nr_attrs = decoder_nr_attrs(p->decoder);
	p->attrs = calloc(p->nr_attrs, sizeof(*p->attrs));
	if (!p->attrs)
		return error_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < p->nr_attrs; i++) {
		const struct event_request *req = request_of(p, i);

		p->attrs[i].outlets = req ? req->push : 0;
		p->attrs[i].time_place = push_clock_place(decoder_attr(p->source->decoder, i));
		p->attrs[i].id = i + 1;
		if (!p->renumbers)
			decoder_ids(p->source->decoder, i, &p->attrs[i].id, 1);
	}
	p->first = p->decoder;
	return 0;
}

/* Whether the records of two attributes are laid out alike. */
static bool is_alike(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return a->sample_type == b->sample_type && a->read_format == b->read_format &&
	       a->sample_id_all == b->sample_id_all &&
	       a->branch_sample_type == b->branch_sample_type &&
	       a->sample_regs_user == b->sample_regs_user &&
	       a->sample_regs_intr == b->sample_regs_intr;
}

/* Returns the attribute of a class; -1: there is none. */
static int attr_of(const struct decoder *d, uint16_t class)
{
	int index = decoder_nr_attrs(d) - 1;

	while (index >= 0 && !decoder_has_class(d, index, class))
		index--;
	return index;
}

/* Finds the place of an attribute by what is requested of it. Returns false if its records cannot
 * be sent. */
static bool find_place(struct pushed *p, const struct decoder *now, int index)
{
	const struct perf_event_attr *attr = decoder_attr(now, index);
	uint64_t id = 0;
	int place = -1;

	for (uint32_t i = 0; i < p->nr_requests && place < 0; i++)
		if (decoder_has_class(now, index, p->requests[i].class))
			place = attr_of(p->first, p->requests[i].class);
	p->places[index] = place;
	if (place < 0)
		return true;
	decoder_ids(now, index, &id, 1);
	p->renumbers |= id != p->attrs[place].id;
	return is_alike(attr, decoder_attr(p->first, place)) &&
	       (!p->renumbers || attr->sample_type & PERF_SAMPLE_IDENTIFIER);
}

int pushed_follow(struct pushed *p, const struct decoder *now, struct error *err)
{
	int n = decoder_nr_attrs(now);
	bool fits = true;

	if (now == p->decoder)
		return 0;
	p->decoder = now;
	p->renumbers = false;
	free(p->places);
	p->places = NULL;
	if (now == p->first)
		return 0;
	p->places = malloc(n * sizeof(*p->places));
	if (!p->places)
		return error_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < n; i++)
		fits &= find_place(p, now, i);
	if (!fits)
		return error_set(err, -EPROTO,
				 "push: the sender has come back with other samples, which the "
				 "streams that have begun cannot contain: start this run again");
	return 0;
}

static bool is_dummy(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_DUMMY;
}

static void add_format(struct pushed *p, struct wire_event *ev)
{
	struct formats *formats = p->source->ops->formats(p->source, NULL);
	struct tracepoint *t = formats ? formats_by_id(formats, ev->attr.config) : NULL;
	size_t size;

	if (!t || ev->attr.type != PERF_TYPE_TRACEPOINT)
		return;
	ev->format = tracepoint_text(t, &size);
	ev->format_size = size;
	ev->system = tracepoint_system(t);
}

/* Describes an attribute for the header of a stream. */
static void describe(struct pushed *p, int index, struct wire_event *ev, uint64_t *ids,
		     uint32_t max)
{
	const struct event_request *req = request_of(p, index);

	ev->attr = *decoder_attr(p->source->decoder, index);
	ev->attr.size = sizeof(ev->attr);
	if (p->has_own_clock)
		ev->attr.use_clockid = ev->attr.clockid = 0;
	ev->name = req ? req->name : "dummy";
	if (req && req->config1_text)
		ev->attr.config1 = 0; /* an address in this process */
	if (req && req->bpf_array) {  /* the kernel says that a BPF program wrote the samples */
		ev->attr.type = req->attr.type;
		ev->attr.config = req->attr.config;
	}
	add_format(p, ev);
	ev->ids = ids;
	ev->nr_ids = max;
	if (p->renumbers)
		ids[0] = index + 1;
	else
		decoder_ids(p->source->decoder, index, ids, max);
}

static uint32_t nr_ids(const struct pushed *p, int index)
{
	return p->renumbers ? 1 : decoder_ids(p->source->decoder, index, NULL, 0);
}

/* Whether an attribute is part of a stream. Dummy events have the records about tasks. */
static bool is_in(const struct pushed *p, int index, int bit)
{
	return p->attrs[index].outlets >> bit & 1 ||
	       is_dummy(decoder_attr(p->source->decoder, index));
}

struct wire_event *pushed_describe(struct pushed *p, int bit, uint32_t *n, struct error *err)
{
	uint32_t ids = 0, at = 0;
	struct wire_event *events;
	uint64_t *next;

	*n = 0;
	for (int i = 0; i < p->nr_attrs; i++) {
		*n += is_in(p, i, bit);
		ids += is_in(p, i, bit) ? nr_ids(p, i) : 0;
	}
	events = calloc(1, *n * sizeof(*events) + ids * sizeof(*next));
	if (!events) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	next = (uint64_t *)(events + *n);
	for (int dummies = 0; dummies <= 1; dummies++) {
		for (int i = 0; i < p->nr_attrs; i++) {
			if (!is_in(p, i, bit) || dummies == (int)(p->attrs[i].outlets >> bit & 1))
				continue;
			describe(p, i, &events[at++], next, nr_ids(p, i));
			next += nr_ids(p, i);
		}
	}
	return events;
}
