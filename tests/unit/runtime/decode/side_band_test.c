/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "event.h"
#include "tests/unit/runtime/decode/builder.h"

static void side_band_of(const struct perf_event_attr *attr)
{
	static const struct {
		uint32_t type, words;
		uint16_t class;
		int pid, tid;
		uint64_t period;
	} kinds[] = {
		{PERF_RECORD_LOST, 2, EVENT_LOST, -1, -1, 55},
		{PERF_RECORD_LOST_SAMPLES, 1, EVENT_LOST, -1, -1, 7},
		{PERF_RECORD_COMM, 3, EVENT_COMM, 7, 8, 1},
		{PERF_RECORD_FORK, 3, EVENT_FORK, 7, 55, 1},
		{PERF_RECORD_EXIT, 3, EVENT_EXIT, 7, 55, 1},
	};
	struct decoder *d = decoder_of(attr);
	bool has_time = attr->sample_id_all && attr->sample_type & PERF_SAMPLE_TIME;
	bool has_cpu = attr->sample_id_all && attr->sample_type & PERF_SAMPLE_CPU;

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct builder b = {.n = 0};
		struct perf_event_header *rec;
		struct event ev;
		uint64_t time;

		put(&b, kinds[i].type == PERF_RECORD_COMM ? 8ull << 32 | 7 : 7);
		put(&b, kinds[i].type == PERF_RECORD_COMM ? 0x656d616e : 55);
		put(&b, 0);
		b.n = kinds[i].words;
		put_trailer(&b, attr);
		rec = record(kinds[i].type, &b, b.n);
		assert_int_equal(decoder_decode(d, rec, &ev, 1), 1);
		assert_int_equal(ev.class, kinds[i].class);
		assert_int_equal(ev.pid, kinds[i].pid);
		assert_int_equal(ev.tid, kinds[i].tid);
		assert_int_equal(ev.period, kinds[i].period);
		assert_int_equal(ev.cpu, has_cpu ? CPU : -1);
		assert_int_equal(ev.raw_size, kinds[i].words * 8);
		assert_int_equal(decoder_time(d, rec, &time), has_time);
		assert_true(!has_time || time == when);
		free(rec);
		/* 16 bytes are enough for COMM, the others need all of theirs. */
		rec = record(kinds[i].type, &b, b.n - 1 - (kinds[i].type == PERF_RECORD_COMM));
		assert_int_equal(decoder_decode(d, rec, &ev, 1), -EBADMSG);
		free(rec);
	}
	decoder_free(d);
}

static void side_band(void **state)
{
	static const uint64_t bits[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_TID,
					PERF_SAMPLE_TIME,	PERF_SAMPLE_ID,
					PERF_SAMPLE_STREAM_ID,	PERF_SAMPLE_CPU};

	(void)state;
	for (unsigned int set = 0; set < 1 << 7; set++) {
		struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_RAW,
					       .sample_id_all = set >> 6};

		for (int i = 0; i < 6; i++)
			if (set >> i & 1)
				attr.sample_type |= bits[i];
		side_band_of(&attr);
	}
}

static void other_records_are_ignored(void **state)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_TIME, .sample_id_all = 1};
	struct decoder *d = decoder_of(&attr);
	struct builder b = {.n = 3};
	struct event ev;

	(void)state;
	for (uint32_t type = 0; type < 100; type++) {
		struct perf_event_header *rec = record(type, &b, 3);
		int n = decoder_decode(d, rec, &ev, 1);

		if (type > PERF_RECORD_LOST_SAMPLES && type != PERF_RECORD_KSYMBOL)
			assert_int_equal(n, 0);
		free(rec);
	}
	decoder_free(d);
}

/* The kernel adds the size of a trailer twice to a record for two readers: the words after the
 * first trailer are not a trailer. */
static void long_records(void **state)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME,
				       .sample_id_all = 1};
	static const uint64_t bodies[][4] = {
		{1, 0x0123456789abcdef},			 /* BPF_EVENT: its tag */
		{0xffffffffc0000000, 23, 0x4141414141414141, 0}, /* KSYMBOL: a name and its NUL */
		{0xffffffff81000000, 0x4141414100020005, 0x414141},
	};
	static const struct {
		uint32_t type, words;
	} kinds[] = {
		{PERF_RECORD_BPF_EVENT, 2}, {PERF_RECORD_KSYMBOL, 4}, {PERF_RECORD_TEXT_POKE, 3}};

	(void)state;
	for (int i = 0; i < 3; i++) {
		for (int extra = 0; extra < 3; extra++) {
			struct decoder *d = decoder_new();
			struct builder b = {.n = 0};
			struct perf_event_header *rec;
			struct event ev[2];
			uint64_t time;

			decoder_add_attr(d, &attr, NULL);
			decoder_add_attr(d, &attr, NULL);
			decoder_add_id(d, id, 0);
			decoder_add_id(d, id + 1, 1);
			decoder_add_record(d, 1, kinds[i].type, EVENT_FIRST + 3);
			assert_int_equal(decoder_check(d, NULL), 0);
			memcpy(b.words, bodies[i], kinds[i].words * 8);
			b.n = kinds[i].words;
			b.words[b.n++] = when;
			b.words[b.n++] = id + 1;
			for (int j = 0; j < extra; j++) {
				b.words[b.n++] = 0xdeadbeef;
				b.words[b.n++] = id;
			}
			rec = record(kinds[i].type, &b, b.n);
			assert_true(decoder_time(d, rec, &time) && time == when);
			assert_int_equal(decoder_decode(d, rec, ev, 2), 1);
			assert_int_equal(ev[0].class, EVENT_FIRST + 3);
			assert_int_equal(ev[0].raw_size, kinds[i].words * 8);
			free(rec);
			decoder_free(d);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(side_band),
		cmocka_unit_test(other_records_are_ignored),
		cmocka_unit_test(long_records),
	};

	return cmocka_run_group_tests_name("side_band", tests, NULL, NULL);
}
