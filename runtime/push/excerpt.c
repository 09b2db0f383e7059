/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/excerpt.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "decode/decoder.h"
#include "os/clock.h"
#include "push/kernel_symbols.h"
#include "push/outlet.h"
#include "push/pushed.h"
#include "source.h"

enum {
	COMM_SIZE = 16,
	WRITE_AFTER = 1 << 20 /* bytes of records; the file's queue holds several times as much */
};

struct excerpt {
	struct source *source;
	struct outlets all;
	struct outlet *outlet;
	struct pushed pushed;
	uint64_t newest; /* time of the last record */
	size_t unwritten;
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[COMM_SIZE];
	uint64_t trailer[6]; /* as far as header.size says */
};

/* Writes what there is to write. */
static int write_all(struct excerpt *x, struct error *err)
{
	int ret;

	x->unwritten = 0;
	do {
		ret = outlet_turn(x->outlet, clock_monotonic(), x->newest, true, err);
	} while (!ret && outlet_is_behind(x->outlet));
	return ret;
}

/* Writes what is before the records. */
static int begin(struct excerpt *x, struct error *err)
{
	if (x->all.has_addresses)
		kernel_symbols_add(&x->all.symbols, x->all.trailer_words);
	return write_all(x, err);
}

static int add_events(struct excerpt *x, const struct event_request *const *events, uint32_t n,
		      struct error *err)
{
	struct wire_event *described;
	uint32_t nr_described;

	x->pushed.source = x->source;
	x->pushed.renumbers = true;
	for (uint32_t i = 0; i < n; i++) {
		struct event_request one = *events[i];

		one.push = 1;
		if (pushed_add(&x->pushed, &one, err))
			return -1;
		x->all.has_addresses |= one.callchain || one.resolve;
	}
	if (pushed_list(&x->pushed, err))
		return -1;
	described = pushed_describe(&x->pushed, 0, &nr_described, err);
	if (!described)
		return -1;
	outlet_set_events(x->outlet, described, nr_described);
	return 0;
}

struct excerpt *excerpt_new(struct source *src, const char *path,
			    const struct event_request *const *events, uint32_t n,
			    struct error *err)
{
	struct excerpt *x = calloc(1, sizeof(*x));

	if (!x) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	x->source = src;
	if (outlets_init(&x->all, err))
		goto fail;
	outlets_describe(&x->all, src);
	x->outlet = outlet_new(&x->all, path, err);
	if (!x->outlet || add_events(x, events, n, err) || outlet_open(x->outlet, err))
		goto fail;
	/* Tasks are named when their events come. */
	x->all.is_local = x->all.has_addresses;
	return x;
fail:
	excerpt_free(x);
	return NULL;
}

void excerpt_free(struct excerpt *x)
{
	if (!x)
		return;
	outlet_free(x->outlet);
	pushed_clear(&x->pushed);
	outlets_clear(&x->all);
	free(x);
}

static int add(struct excerpt *x, const struct perf_event_header *rec, uint64_t time, int index,
	       struct error *err)
{
	int ret = x->outlet->group ? 0 : begin(x, err);
	struct perf_event_header *copy = ret ? NULL : outlet_add(x->outlet, rec, time);
	uint64_t *place;

	if (copy) {
		pushed_renumber(&x->pushed, copy, index);
		place = push_clock_find(&x->all.clock, copy, UINT32_MAX);
		if (place)
			*place = time;
	}
	x->outlet->produced += rec->type == PERF_RECORD_SAMPLE;
	x->newest = time;
	x->unwritten += rec->size;
	return !ret && x->unwritten > WRITE_AFTER ? write_all(x, err) : ret;
}

int excerpt_add(struct excerpt *x, const struct slot *slot, struct error *err)
{
	const struct perf_event_header *rec = slot->rec;
	int index = 0;

	if (rec->type == PERF_RECORD_SAMPLE)
		index = decoder_index_of(x->source->decoder, rec);
	return index < 0 ? 0 : add(x, rec, slot->time, index, err);
}

int excerpt_name(struct excerpt *x, int32_t pid, int32_t tid, const char *name, uint64_t time,
		 struct error *err)
{
	struct comm_record rec = {.header = {.type = PERF_RECORD_COMM}, .pid = pid, .tid = tid};

	strncpy(rec.comm, name, sizeof(rec.comm) - 1);
	rec.header.size = offsetof(struct comm_record, trailer) + x->all.trailer_words * 8;
	return add(x, &rec.header, time, 0, err);
}

int excerpt_end(struct excerpt *x, struct error *err)
{
	int ret = x->outlet->group ? 0 : begin(x, err);

	if (ret)
		return ret;
	outlet_end(x->outlet);
	return write_all(x, err);
}
