/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Builds records from their description in perf_event_open(2), each in a block of memory of exactly
 * its size, so that the sanitizers find a read beyond its end. Included after cmocka.h.
 */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "event.h"

enum { PID = 1234, TID = 1235, CPU = 3, CLASS = EVENT_FIRST + 2 };

static const uint64_t id = 4711, when = 123456789012345;

struct builder {
	uint64_t words[64];
	unsigned int n;
};

static void put(struct builder *b, uint64_t word)
{
	b->words[b->n++] = word;
}

static void put_trailer(struct builder *b, const struct perf_event_attr *attr)
{
	uint64_t type = attr->sample_id_all ? attr->sample_type : 0;

	if (type & PERF_SAMPLE_TID)
		put(b, (uint64_t)TID << 32 | PID);
	if (type & PERF_SAMPLE_TIME)
		put(b, when);
	if (type & PERF_SAMPLE_ID)
		put(b, id);
	if (type & PERF_SAMPLE_STREAM_ID)
		put(b, 0xbeef);
	if (type & PERF_SAMPLE_CPU)
		put(b, CPU);
	if (type & PERF_SAMPLE_IDENTIFIER)
		put(b, id);
}

static struct perf_event_header *record(uint32_t type, const struct builder *b, unsigned int words)
{
	struct perf_event_header *rec = malloc(sizeof(*rec) + words * 8);

	*rec = (struct perf_event_header){.type = type, .size = sizeof(*rec) + words * 8};
	memcpy(rec + 1, b->words, words * 8);
	return rec;
}

static struct decoder *decoder_of(const struct perf_event_attr *attr)
{
	struct decoder *d = decoder_new();

	assert_int_equal(decoder_add_attr(d, attr, NULL), 0);
	assert_int_equal(decoder_add_class(d, 0, CLASS, 0), 0);
	assert_int_equal(decoder_check(d, NULL), 0);
	return d;
}
