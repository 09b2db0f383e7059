/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "error.h"
#include "event.h"
#include "tests/unit/runtime/decode/builder.h"

enum { PERIOD = 77, CHAIN = 3, RAW = 20 };
#define FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST, which older headers lack */

static const uint8_t payload[RAW] = "payload of 20 bytes";

static void put_read_values(struct builder *b, uint64_t format, uint64_t members)
{
	if (format & PERF_FORMAT_GROUP)
		put(b, members);
	else
		put(b, 99); /* value */
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		put(b, 1);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		put(b, 2);
	for (uint64_t i = 0; i < (format & PERF_FORMAT_GROUP ? members : 1); i++) {
		if (format & PERF_FORMAT_GROUP)
			put(b, 99);
		if (format & PERF_FORMAT_ID)
			put(b, 5);
		if (format & FORMAT_LOST)
			put(b, 6);
	}
}

static void put_raw(struct builder *b)
{
	uint32_t size = RAW;
	uint8_t *at = (uint8_t *)&b->words[b->n];

	memcpy(at, &size, 4);
	memcpy(at + 4, payload, RAW);
	b->n += (4 + RAW) / 8;
}

static void put_sample(struct builder *b, const struct perf_event_attr *attr)
{
	uint64_t type = attr->sample_type;

	if (type & PERF_SAMPLE_IDENTIFIER)
		put(b, id);
	if (type & PERF_SAMPLE_IP)
		put(b, 0xffffffff81000000);
	if (type & PERF_SAMPLE_TID)
		put(b, (uint64_t)TID << 32 | PID);
	if (type & PERF_SAMPLE_TIME)
		put(b, when);
	if (type & PERF_SAMPLE_ADDR)
		put(b, 0xdead);
	if (type & PERF_SAMPLE_ID)
		put(b, id);
	if (type & PERF_SAMPLE_STREAM_ID)
		put(b, 0xbeef);
	if (type & PERF_SAMPLE_CPU)
		put(b, 0xabcdull << 32 | CPU); /* the upper half is reserved */
	if (type & PERF_SAMPLE_PERIOD)
		put(b, PERIOD);
	if (type & PERF_SAMPLE_READ)
		put_read_values(b, attr->read_format, 2);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		put(b, CHAIN);
		for (int i = 0; i < CHAIN; i++)
			put(b, 0x1000 + i);
	}
	if (type & PERF_SAMPLE_RAW)
		put_raw(b);
}

static void check_sample(const struct perf_event_attr *attr, const struct event *ev)
{
	uint64_t type = attr->sample_type;

	assert_int_equal(ev->class, CLASS);
	assert_int_equal(ev->pid, type & PERF_SAMPLE_TID ? PID : -1);
	assert_int_equal(ev->tid, type & PERF_SAMPLE_TID ? TID : -1);
	assert_int_equal(ev->cpu, type & PERF_SAMPLE_CPU ? CPU : -1);
	if (type & PERF_SAMPLE_PERIOD)
		assert_int_equal(ev->period, PERIOD);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		assert_int_equal(ev->chain[0], CHAIN);
		assert_int_equal(ev->chain[CHAIN], 0x1000 + CHAIN - 1);
	} else {
		assert_null(ev->chain);
	}
	assert_int_equal(ev->raw_size, type & PERF_SAMPLE_RAW ? RAW : 0);
	if (type & PERF_SAMPLE_RAW)
		assert_memory_equal(ev->raw, payload, RAW);
}

/* One record whole, and truncated after each of its words. */
static void check_record(const struct perf_event_attr *attr)
{
	struct decoder *d = decoder_of(attr);
	struct builder b = {.n = 0};
	struct event ev;
	uint64_t time;

	put_sample(&b, attr);
	for (unsigned int words = 0; words <= b.n; words++) {
		struct perf_event_header *rec = record(PERF_RECORD_SAMPLE, &b, words);
		int n = decoder_decode(d, rec, &ev, 1);

		assert_int_equal(n, words == b.n ? 1 : -EBADMSG);
		if (n == 1)
			check_sample(attr, &ev);
		if (decoder_time(d, rec, &time))
			assert_int_equal(time, when);
		else
			assert_true(!(attr->sample_type & PERF_SAMPLE_TIME) || words < b.n);
		if (words == b.n)
			assert_int_equal(decoder_cpu(d, rec),
					 attr->sample_type & PERF_SAMPLE_CPU ? CPU : -1);
		free(rec);
	}
	decoder_free(d);
}

/* All combinations of the twelve kinds of words, with all formats of READ. */
static void all_sample_types(void **state)
{
	static const uint64_t bits[] = {
		PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	       PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR,      PERF_SAMPLE_ID,
		PERF_SAMPLE_CPU,	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_PERIOD,
		PERF_SAMPLE_CALLCHAIN,	PERF_SAMPLE_RAW,       PERF_SAMPLE_READ,
	};
	enum { BITS = sizeof(bits) / sizeof(bits[0]) };

	(void)state;
	for (unsigned int set = 1; set < 1 << BITS; set++) {
		struct perf_event_attr attr = {.sample_id_all = 1};

		for (int i = 0; i < BITS; i++)
			if (set >> i & 1)
				attr.sample_type |= bits[i];
		if (attr.sample_type & PERF_SAMPLE_READ)
			attr.read_format = set * 7 % 32;
		check_record(&attr);
	}
	for (uint64_t format = 0; format < 32; format++) {
		struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ |
							      PERF_SAMPLE_RAW,
					       .read_format = format};

		check_record(&attr);
	}
}

/* Decodes a sample whose word number `at` was replaced. */
static int decode_with(const struct perf_event_attr *attr, unsigned int at, uint64_t word)
{
	struct decoder *d = decoder_of(attr);
	struct builder b = {.n = 0};
	struct perf_event_header *rec;
	struct event ev;
	int ret;

	put_sample(&b, attr);
	b.words[at] = word;
	rec = record(PERF_RECORD_SAMPLE, &b, b.n);
	ret = decoder_decode(d, rec, &ev, 1);
	free(rec);
	decoder_free(d);
	return ret;
}

static void wrong_sizes(void **state)
{
	struct perf_event_attr chain = {.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
						       PERF_SAMPLE_RAW};
	struct perf_event_attr group = {.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ |
						       PERF_SAMPLE_RAW,
					.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID};
	struct perf_event_attr raw = {.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW};
	static const uint64_t lies[] = {
		8,
		1000,
		UINT32_MAX,
		1ull << 61,
		1ull << 62,
		(1ull << 63) + 1,
		UINT64_MAX - 1,
		UINT64_MAX,
	};

	(void)state;
	assert_int_equal(decode_with(&chain, 1, CHAIN), 1);
	assert_int_equal(decode_with(&group, 1, 2), 1);
	for (unsigned int i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		assert_int_equal(decode_with(&chain, 1, lies[i]), -EBADMSG);
		assert_int_equal(decode_with(&group, 1, lies[i]), -EBADMSG);
	}
	/* The lower 32 bits are the size of the payload; the rest is payload already. */
	assert_int_equal(decode_with(&raw, 1, RAW), 1);
	assert_int_equal(decode_with(&raw, 1, RAW + 1), -EBADMSG);
	assert_int_equal(decode_with(&raw, 1, UINT32_MAX), -EBADMSG);
	assert_int_equal(decode_with(&raw, 1, UINT32_MAX - 3), -EBADMSG);
}

/* Attributes with different samples, distinguished by their ids: close together (an array) or not
 * (a hash). */
static void several_attributes(void **state)
{
	static const uint64_t distances[] = {1, 1000, 1ull << 40};
	static const int nr_classes[] = {1, 2, 0};
	struct perf_event_attr attrs[3] = {
		{.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW},
		{.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW},
		{.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME},
	};

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct decoder *d = decoder_new();
		struct event ev[4];

		for (int i = 0; i < 3; i++) {
			assert_int_equal(decoder_add_attr(d, &attrs[i], NULL), i);
			for (int cpu = 0; cpu < 100; cpu++)
				assert_int_equal(
					decoder_add_id(d, id + (3 * cpu + i) * distances[k], i), 0);
		}
		assert_int_equal(decoder_add_id(d, 0, 0), -EINVAL);
		assert_int_equal(decoder_add_id(d, 1, 3), -EINVAL);
		decoder_add_class(d, 0, EVENT_FIRST, RAW);
		decoder_add_class(d, 1, EVENT_FIRST + 1, 0);
		decoder_add_class(d, 1, EVENT_FIRST + 2, 0);
		assert_int_equal(decoder_check(d, NULL), 0);
		assert_int_equal(decoder_nr_attrs(d), 3);
		assert_int_equal(decoder_time_word(d), -1); /* not the same in all */

		for (int i = 0; i < 3; i++) {
			struct builder b = {.n = 0};
			struct perf_event_header *rec;
			uint64_t time;

			put_sample(&b, &attrs[i]);
			b.words[0] = id + (3 * 50 + i) * distances[k];
			rec = record(PERF_RECORD_SAMPLE, &b, b.n);
			assert_int_equal(decoder_decode(d, rec, ev, 4), nr_classes[i]);
			assert_true(decoder_time(d, rec, &time) && time == when);
			for (int j = 0; j < nr_classes[i]; j++)
				assert_int_equal(ev[j].class, EVENT_FIRST + i + j);
			if (nr_classes[i] > 1)
				assert_int_equal(decoder_decode(d, rec, ev, 1), -ENOSPC);
			((uint64_t *)(rec + 1))[0] = id - 1; /* an unknown id */
			assert_int_equal(decoder_decode(d, rec, ev, 4), 0);
			free(rec);
		}
		decoder_free(d);
	}
}

static void short_payload(void **state)
{
	struct perf_event_attr attrs[] = {
		{.sample_type =
			 PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW},
		{.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW},
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct decoder *d = decoder_new();
		struct builder b = {.n = 0};
		struct perf_event_header *rec;
		struct event ev;

		decoder_add_attr(d, &attrs[i / 2], NULL);
		decoder_add_class(d, 0, CLASS, RAW + i % 2);
		assert_int_equal(decoder_check(d, NULL), 0);
		put_sample(&b, &attrs[i / 2]);
		rec = record(PERF_RECORD_SAMPLE, &b, b.n);
		assert_int_equal(decoder_decode(d, rec, &ev, 1), i % 2 ? -EBADMSG : 1);
		free(rec);
		decoder_free(d);
	}
}

/* A task that has ended has the ids -1, but the payload of a tracepoint has its thread. */
static void task_that_has_ended(void **state)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
				       .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						      PERF_SAMPLE_CPU | PERF_SAMPLE_RAW};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct builder b = {.n = 0};
		struct perf_event_header *rec;
		struct decoder *d;
		struct event ev, run;
		struct slot slot = {.time = when};
		int32_t common_pid;

		attr.type = i ? PERF_TYPE_RAW : PERF_TYPE_TRACEPOINT;
		d = decoder_of(&attr);
		put_sample(&b, &attr);
		b.words[0] = UINT64_MAX;
		slot.rec = rec = record(PERF_RECORD_SAMPLE, &b, b.n);
		assert_int_equal(decoder_decode_run(d, &slot, 1, 0, 0, &run), 0);
		assert_int_equal(decoder_decode(d, rec, &ev, 1), 1);
		memcpy(&common_pid, payload + 4, sizeof(common_pid));
		assert_int_equal(ev.pid, -1);
		assert_int_equal(ev.tid, i ? -1 : common_pid);
		free(rec);
		decoder_free(d);
	}
}

/* The kernel may give a sample of a software event the id of another reader's event. */
static void ids_of_other_readers(void **state)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID};
	struct decoder *d = decoder_new();
	struct builder b = {.n = 0};
	struct perf_event_header *rec;
	struct event ev;

	(void)state;
	put_sample(&b, &attr);
	rec = record(PERF_RECORD_SAMPLE, &b, b.n);
	for (int i = 0; i < 3; i++) {
		decoder_add_attr(d, &attr, NULL);
		decoder_add_id(d, id + 1 + i, i);
		decoder_add_class(d, i, CLASS + i, 0);
	}
	assert_int_equal(decoder_check(d, NULL), 0);
	assert_int_equal(decoder_decode(d, rec, &ev, 1), 0);
	decoder_note_shared(d, 1);
	assert_int_equal(decoder_decode(d, rec, &ev, 1), 1);
	assert_int_equal(ev.class, CLASS + 1);
	decoder_note_shared(d, 2);
	assert_int_equal(decoder_decode(d, rec, &ev, 1), -EBADMSG);
	free(rec);
	decoder_free(d);
}

static void check_refuses(void **state)
{
	struct perf_event_attr with_id = {.sample_type = PERF_SAMPLE_IDENTIFIER};
	struct perf_event_attr other_place = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ID};
	struct decoder *d = decoder_new();
	struct error err = {.text = ""};

	(void)state;
	assert_int_equal(decoder_check(d, &err), -EINVAL);
	assert_string_equal(err.text, "no events");
	decoder_add_attr(d, &with_id, NULL);
	assert_int_equal(decoder_check(d, &err), 0);
	decoder_add_attr(d, &with_id, NULL);
	assert_int_equal(decoder_check(d, &err), -EINVAL);
	assert_string_equal(err.text, "2 events but no ids to tell their samples apart");
	decoder_add_id(d, 1, 0);
	decoder_add_id(d, 2, 1);
	assert_int_equal(decoder_check(d, &err), 0);
	decoder_add_attr(d, &other_place, NULL);
	assert_int_equal(decoder_check(d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "samples of event 2 do not have their id"));
	decoder_free(d);
}

/* A run is decoded as its records are one by one; a record that is not a plain sample ends it. */
static void runs_are_the_same_as_records(void **state)
{
	enum { N = 2000 };
	struct perf_event_attr attrs[2] = {
		{.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		 .sample_id_all = 1},
		{.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
		 .sample_id_all = 1},
	};
	struct decoder *d = decoder_new();
	struct slot *slots = calloc(N, sizeof(*slots));
	struct event *run = calloc(N, sizeof(*run));
	int plain = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		decoder_add_attr(d, &attrs[i], NULL);
		decoder_add_id(d, id + i, i);
		decoder_add_class(d, i, EVENT_FIRST + i, 0);
	}
	assert_int_equal(decoder_check(d, NULL), 0);
	srand(1);
	for (int i = 0; i < N; i++) {
		int which = rand() % 20 == 0, lost = rand() % 20 == 0;
		struct builder b = {.n = 0};

		if (lost) {
			put(&b, id);
			put(&b, 3);
			put_trailer(&b, &attrs[0]);
		} else {
			put_sample(&b, &attrs[which]);
			b.words[0] = id + which;
		}
		slots[i].rec = record(lost ? PERF_RECORD_LOST : PERF_RECORD_SAMPLE, &b, b.n);
		slots[i].time = when + i;
		slots[i].ring = i % 5;
		slots[i].flags = rand() % 50 == 0 ? EVENT_LATE : 0;
	}
	for (int at = 0; at < N; at++) {
		int n = decoder_decode_run(d, &slots[at], N - at, when, when + 10, run);

		for (int i = 0; i < n; i++, at++, plain++) {
			struct event one;

			memset(&one, 0, sizeof(one));
			assert_int_equal(decoder_decode(d, slots[at].rec, &one, 1), 1);
			assert_int_equal(one.class, EVENT_FIRST);
			assert_true(run[i].time == at && run[i].ring == slots[at].ring &&
				    !run[i].flags);
			one.time = run[i].time;
			one.ring = run[i].ring;
			one.flags = 0;
			run[i].key = 0;
			assert_memory_equal(&one, &run[i], sizeof(one));
		}
		if (at < N) { /* the record that ended the run is not plain */
			const struct perf_event_header *rec = slots[at].rec;

			assert_true(at < 10 || slots[at].flags || rec->type == PERF_RECORD_LOST ||
				    ((const uint64_t *)(rec + 1))[0] == id + 1);
		}
	}
	assert_true(plain > N / 2);
	for (int i = 0; i < N; i++)
		free((void *)slots[i].rec);
	free(slots);
	free(run);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sample_types),
		cmocka_unit_test(wrong_sizes),
		cmocka_unit_test(several_attributes),
		cmocka_unit_test(short_payload),
		cmocka_unit_test(task_that_has_ended),
		cmocka_unit_test(ids_of_other_readers),
		cmocka_unit_test(check_refuses),
		cmocka_unit_test(runs_are_the_same_as_records),
	};

	return cmocka_run_group_tests_name("decoder", tests, NULL, NULL);
}
