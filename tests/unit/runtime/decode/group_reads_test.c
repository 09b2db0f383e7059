/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "event.h"

enum { LEADER = 5, MEMBER = 6, CLASS = EVENT_FIRST };

static const struct perf_event_attr group = {
	.type = PERF_TYPE_TRACEPOINT,
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_READ,
	.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
};

/* A sample of the leader in a thread, with nr pairs of count and id. Just its size, so that the
 * sanitizers see a read past its end. */
static struct perf_event_header *sample(uint32_t tid, int nr, const uint64_t *pairs)
{
	size_t size = sizeof(struct perf_event_header) + (3 + 2 * nr) * 8;
	struct perf_event_header *rec = malloc(size);
	uint64_t *w = (uint64_t *)(rec + 1);

	*rec = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = size};
	w[0] = LEADER;
	w[1] = (uint64_t)tid << 32 | tid;
	w[2] = nr;
	memcpy(w + 3, pairs, 2 * nr * sizeof(*w));
	return rec;
}

/* Checks the periods of the events of a sample; 0 ends the expected ones. */
static void check_events(struct decoder *d, uint32_t tid, uint64_t leader, uint64_t member,
			 const uint64_t *periods, const uint16_t *classes)
{
	struct perf_event_header *rec =
		sample(tid, 2, (uint64_t[]){leader, LEADER, member, MEMBER});
	struct event ev[8];
	int n = decoder_decode(d, rec, ev, 8), i;

	for (i = 0; periods[i]; i++) {
		assert_true(i < n);
		assert_int_equal(ev[i].period, periods[i]);
		assert_int_equal(ev[i].class, classes[i]);
		assert_int_equal(ev[i].tid, tid);
	}
	assert_int_equal(n, i);
	free(rec);
}

static struct decoder *new_decoder(bool inherit)
{
	struct perf_event_attr attr = group;
	struct decoder *d = decoder_new();

	attr.inherit = inherit;
	for (int i = 0; i < 2; i++) {
		attr.config = 100 + i;
		assert_int_equal(decoder_add_attr(d, &attr, NULL), i);
		assert_int_equal(decoder_add_id(d, LEADER + i, i), 0);
	}
	assert_int_equal(decoder_split_groups(d), 0);
	return d;
}

static void one_event_per_member_that_counted(void **state)
{
	static const uint16_t both[] = {CLASS, CLASS + 1}, second[] = {CLASS + 1};
	struct decoder *d = new_decoder(false);

	(void)state;
	decoder_add_class(d, 0, CLASS, 0);
	decoder_add_class(d, 1, CLASS + 1, 0);
	assert_int_equal(decoder_check(d, NULL), 0);
	check_events(d, 7, 1, 3, (uint64_t[]){1, 3, 0}, both);
	check_events(d, 8, 2, 3, (uint64_t[]){1, 0}, both);
	check_events(d, 7, 2, 10, (uint64_t[]){7, 0}, second);
	check_events(d, 7, 2, 10, (uint64_t[]){0}, second);
	decoder_free(d);
}

/* An inherited event has one id, but counts each thread on its own. */
static void threads_of_inherited_events(void **state)
{
	static const uint16_t both[] = {CLASS, CLASS + 1};
	struct decoder *d = new_decoder(true);

	(void)state;
	decoder_add_class(d, 0, CLASS, 0);
	decoder_add_class(d, 1, CLASS + 1, 0);
	assert_int_equal(decoder_check(d, NULL), 0);
	check_events(d, 7, 5, 9, (uint64_t[]){5, 9, 0}, both);
	check_events(d, 8, 1, 2, (uint64_t[]){1, 2, 0}, both);
	check_events(d, 7, 6, 11, (uint64_t[]){1, 2, 0}, both);
	decoder_free(d);
}

static void members_alone(void **state)
{
	static const uint16_t twice[] = {CLASS, CLASS + 1};
	struct decoder *d = new_decoder(false);
	struct perf_event_header *rec = sample(7, 2, (uint64_t[]){9, LEADER, 9, MEMBER});
	struct event ev[2];

	(void)state;
	decoder_add_class(d, 1, CLASS, 16);
	decoder_add_class(d, 1, CLASS + 1, 16);
	assert_int_equal(decoder_check(d, NULL), 0);
	check_events(d, 7, 1, 3, (uint64_t[]){3, 3, 0}, twice);
	/* Without room for all events, the counts stay those of the previous sample. */
	assert_int_equal(decoder_decode(d, rec, ev, 1), -ENOSPC);
	assert_int_equal(decoder_decode(d, rec, ev, 2), 2);
	for (int i = 0; i < 2; i++) {
		const uint64_t *w = (const uint64_t *)ev[i].raw;

		assert_int_equal(ev[i].period, 6);
		assert_true(ev[i].raw_size >= 16);
		assert_int_equal(w[0], 101 | 7ull << 32); /* type and pid */
		assert_int_equal(w[1], 0);
	}
	free(rec);
	decoder_free(d);
}

static void malformed_counts(void **state)
{
	struct decoder *d = new_decoder(false);
	uint64_t *many = calloc(2 * (BATCH_MAX + 1), sizeof(*many));
	struct event *ev = calloc(BATCH_MAX, sizeof(*ev));
	struct perf_event_header *rec;

	(void)state;
	decoder_add_class(d, 1, CLASS, 0);
	assert_int_equal(decoder_check(d, NULL), 0);
	for (int i = 0; i <= BATCH_MAX; i++) {
		many[2 * i] = i + 1;
		many[2 * i + 1] = MEMBER;
	}
	rec = sample(7, BATCH_MAX, many);
	assert_int_equal(decoder_decode(d, rec, ev, BATCH_MAX), BATCH_MAX);
	((uint64_t *)(rec + 1))[2] = 1ull << 60;
	assert_int_equal(decoder_decode(d, rec, ev, BATCH_MAX), -EBADMSG);
	free(rec);
	rec = sample(7, BATCH_MAX + 1, many);
	assert_int_equal(decoder_decode(d, rec, ev, BATCH_MAX), -EBADMSG);
	free(rec);
	free(ev);
	free(many);
	decoder_free(d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_event_per_member_that_counted),
		cmocka_unit_test(threads_of_inherited_events),
		cmocka_unit_test(members_alone),
		cmocka_unit_test(malformed_counts),
	};

	return cmocka_run_group_tests_name("group_reads", tests, NULL, NULL);
}
