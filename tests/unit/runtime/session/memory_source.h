/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A made-up source: records from memory on two rings, with a clock that only the test turns,
 * losses, a record format that only the source can decode, counters, and CPUs that come online. It
 * knows only source.h.
 */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "live/count_sums.h"
#include "session/session.h"
#include "source.h"

enum {
	CLASS = EVENT_FIRST,
	OWN_CLASS = EVENT_FIRST + 1,
	MAX = 8192,
	RINGS = 2,
	MS = 1000000,
	START = 1000 * MS, /* of the source's clock, ns */
};

struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, unused;
	uint32_t raw_size;
	uint32_t value;
};

struct loss {
	struct perf_event_header header;
	uint64_t id, lost;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, unused;
	uint64_t identifier;
};

struct memory {
	struct source source;
	struct slot slots[MAX]; /* by time */
	int n, next;
	uint64_t clock, holds; /* ns */
	int attr, cpus, asked_cpus;
	int dropped; /* samples that it has read, and neither delivers nor reports as lost */
	bool opened, started, stopped, ended;
	bool *freed;
	uint16_t closed;
	char name[32];
	struct source_target target;
	struct count count;
	int32_t count_id;
};

static struct formats *memory_formats(struct source *src, struct error *err)
{
	(void)src;
	error_set(err, -ENOENT, "memory has no tracepoints");
	return NULL;
}

static uint64_t memory_sample_type(struct source *src, const struct event_request *req)
{
	(void)src;
	return PERF_SAMPLE_RAW | req->sample;
}

static bool memory_has_records(struct source *src, uint32_t kind)
{
	(void)src;
	return kind == 3;
}

static int memory_add_event(struct source *src, const struct event_request *req, struct error *err)
{
	struct memory *m = (struct memory *)src;

	if (req->attr.type == PERF_TYPE_HARDWARE)
		return error_set(err, -EOPNOTSUPP, "memory has no %s", req->name);
	snprintf(m->name, sizeof(m->name), "%s", req->name);
	return req->is_output || req->counted
		       ? 0
		       : decoder_add_class(src->decoder, m->attr, req->class, req->payload);
}

static int memory_open(struct source *src, const struct source_target *target, struct error *err)
{
	struct memory *m = (struct memory *)src;

	assert_false(m->opened);
	m->opened = true;
	m->target = *target;
	return decoder_check(src->decoder, err);
}

static int memory_start(struct source *src, struct error *err)
{
	struct memory *m = (struct memory *)src;

	(void)err;
	assert_true(m->opened);
	m->started = true;
	src->start = START;
	return 0;
}

static int memory_next(struct source *src, struct slot *out, int max, uint64_t until,
		       struct error *err)
{
	struct memory *m = (struct memory *)src;
	int n = 0;

	(void)err;
	assert_true(m->started);
	while (n < max && m->next < m->n && m->slots[m->next].time <= until &&
	       m->slots[m->next].time <= m->clock - m->holds)
		out[n++] = m->slots[m->next++];
	src->horizon = m->clock - m->holds;
	return n || !(m->stopped || m->ended) || m->next < m->n ? n : -ENODATA;
}

static int memory_wait(struct source *src, int64_t timeout)
{
	struct memory *m = (struct memory *)src;

	assert_true(timeout > 0);
	m->clock += timeout;
	return 0;
}

static void memory_stop(struct source *src)
{
	((struct memory *)src)->stopped = true;
	((struct memory *)src)->holds = 0;
}

static void memory_close_class(struct source *src, uint16_t class)
{
	((struct memory *)src)->closed = class;
}

static uint64_t memory_now(struct source *src)
{
	return ((struct memory *)src)->clock;
}

static uint64_t memory_hold(struct source *src)
{
	return ((struct memory *)src)->holds;
}

static void memory_read_counts(struct source *src, struct counts *out)
{
	struct memory *m = (struct memory *)src;

	*out = (struct counts){
		.nr_rows = 1, .nr_events = 1, .ids = &m->count_id, .values = &m->count};
}

/* The kernel has counted two events more than there are records. */
static bool memory_account(struct source *src, uint16_t class, struct source_account *out)
{
	struct memory *m = (struct memory *)src;

	out->fired = m->n + 2;
	out->lost = 1;
	out->read = m->n + m->dropped;
	out->counters = RINGS;
	out->is_exact = true;
	return class == CLASS;
}

static int memory_next_cpu(struct source *src)
{
	struct memory *m = (struct memory *)src;

	return m->asked_cpus < m->cpus ? m->asked_cpus++ : -1;
}

/* Its own record format is a number. */
static int memory_decode(struct source *src, const struct slot *slot, struct event *ev)
{
	(void)src;
	if (*(const uint32_t *)slot->rec == 0)
		return -EBADMSG;
	*ev = (struct event){.raw = slot->rec,
			     .raw_size = sizeof(uint32_t),
			     .pid = -1,
			     .tid = -1,
			     .cpu = -1,
			     .class = OWN_CLASS,
			     .period = 1};
	return 1;
}

static int memory_decode_run(struct source *src, const struct slot *slots, int n, uint64_t base,
			     uint64_t from, struct event *ev)
{
	int i;

	for (i = 0; i < n; i++) {
		if (slots[i].flags != 1u << SLOT_OWN_SHIFT || slots[i].time < from ||
		    memory_decode(src, &slots[i], &ev[i]) != 1)
			break;
		ev[i].time = (double)(slots[i].time - base);
		ev[i].ring = slots[i].ring;
	}
	return i;
}

static void memory_free(struct source *src)
{
	struct memory *m = (struct memory *)src;

	*m->freed = true;
	for (int i = 0; i < m->n; i++)
		free((void *)m->slots[i].rec);
	decoder_free(src->decoder);
	free(m);
}

static const struct source_ops memory_ops = {
	.formats = memory_formats,
	.sample_type = memory_sample_type,
	.has_records = memory_has_records,
	.add_event = memory_add_event,
	.open = memory_open,
	.start = memory_start,
	.next = memory_next,
	.wait = memory_wait,
	.stop = memory_stop,
	.close_class = memory_close_class,
	.now = memory_now,
	.hold = memory_hold,
	.read_counts = memory_read_counts,
	.account = memory_account,
	.next_cpu = memory_next_cpu,
	.decode = memory_decode,
	.decode_run = memory_decode_run,
	.free = memory_free,
};

static struct memory *memory_new(bool *freed)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
						      PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
						      PERF_SAMPLE_RAW,
				       .sample_period = 1,
				       .sample_id_all = 1};
	struct memory *m = calloc(1, sizeof(*m));
	struct error err;

	m->source.ops = &memory_ops;
	m->source.decoder = decoder_new();
	m->source.start = UINT64_MAX;
	m->source.nr_rings = RINGS;
	m->source.info.wall_sec = NAN;
	m->attr = decoder_add_attr(m->source.decoder, &attr, &err);
	assert_true(m->attr >= 0);
	assert_int_equal(decoder_add_id(m->source.decoder, 7, m->attr), 0);
	m->clock = START;
	m->freed = freed;
	*freed = false;
	return m;
}

/* Keeps the slots sorted by time. */
static struct slot *add_slot(struct memory *m, uint64_t time, const void *rec, uint32_t ring)
{
	int at = m->n++;

	assert_true(at < MAX);
	for (; at > m->next && m->slots[at - 1].time > time; at--)
		m->slots[at] = m->slots[at - 1];
	m->slots[at] = (struct slot){.time = time, .rec = rec, .ring = ring};
	return &m->slots[at];
}

static void add_sample(struct memory *m, uint64_t time, uint32_t ring, uint32_t value)
{
	struct sample *s = calloc(1, sizeof(*s));

	*s = (struct sample){
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(*s)},
		.id = 7,
		.pid = 10,
		.tid = 11,
		.time = time,
		.cpu = ring,
		.raw_size = sizeof(s->value),
		.value = value,
	};
	add_slot(m, time, s, ring);
}

static void add_loss(struct memory *m, uint64_t time, uint64_t end, uint32_t ring, uint64_t lost)
{
	struct loss *l = calloc(1, sizeof(*l));

	*l = (struct loss){
		.header = {.type = PERF_RECORD_LOST, .size = sizeof(*l)},
		.id = 7,
		.lost = lost,
		.time = end,
		.cpu = ring,
		.identifier = 7,
	};
	add_slot(m, time, l, ring);
}

static void add_own(struct memory *m, uint64_t time, uint32_t ring, uint32_t value)
{
	uint32_t *number = calloc(1, sizeof(*number));

	*number = value;
	add_slot(m, time, number, ring)->flags = 1u << SLOT_OWN_SHIFT;
}
