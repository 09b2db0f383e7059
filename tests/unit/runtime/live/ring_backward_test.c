/* SPDX-License-Identifier: GPL-2.0-only */
/* A ring that the kernel overwrites, in plain memory: each dump has the newest whole records, by
 * time, each once, and none newer than requested. */
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
#include "live/ring.h"

enum { PAGE = 4096, MAX = 512 };

struct sample {
	struct perf_event_header header;
	uint64_t time;
	uint64_t padding[7];
};

static struct perf_event_mmap_page *page;
static uint64_t next_time = 1;

/* As the kernel writes backward: the head goes down by the size, then the record is put there. Its
 * size depends on its time, so that some records wrap around the end. */
static void write_samples(uint64_t n)
{
	uint8_t *data = (uint8_t *)page + PAGE;

	for (uint64_t end = next_time + n; next_time < end; next_time++) {
		struct sample s = {.time = next_time};
		uint16_t size = sizeof(s) - next_time % 5 * 8;

		s.header = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = size};
		page->data_head -= size;
		for (uint16_t i = 0; i < size; i++)
			data[(page->data_head + i) % PAGE] = ((const uint8_t *)&s)[i];
	}
}

static struct ring *make_ring(struct decoder **d)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_TIME, .sample_id_all = 1};

	*d = decoder_new();
	assert_int_equal(decoder_add_attr(*d, &attr, NULL), 0);
	assert_int_equal(decoder_check(*d, NULL), 0);
	page = aligned_alloc(PAGE, 2 * PAGE);
	memset(page, 0, 2 * PAGE);
	page->data_offset = page->data_size = PAGE;
	next_time = 1;
	return ring_new_backward(page, 1, *d);
}

static void free_ring(struct ring *r, struct decoder *d)
{
	ring_free(r);
	decoder_free(d);
	free(page);
}

/* Takes up to max records with time <= limit. */
static int take(struct ring *r, uint64_t limit, struct slot *out, int max)
{
	int n = ring_peek(r) == UINT64_MAX ? 0 : ring_count(r, limit, max);

	ring_move(r, out, n);
	return n;
}

/* Takes a whole dump; returns the first time and stores the last one in `last`. */
static uint64_t take_dump(struct ring *r, uint64_t last)
{
	static struct slot out[MAX];
	int n = 0, got;

	while ((got = take(r, UINT64_MAX, out + n, MAX - n)) > 0)
		n += got;
	assert_true(n > 0);
	assert_int_equal(out[n - 1].time, last);
	for (int i = 0; i < n; i++) {
		const struct sample *s = out[i].rec;

		assert_int_equal(out[i].time, out[0].time + i);
		assert_int_equal(s->time, out[i].time);
	}
	assert_int_equal(ring_peek(r), UINT64_MAX);
	ring_release(r);
	return out[0].time;
}

static void shows_nothing_by_itself(void **state)
{
	struct decoder *d;
	struct ring *r = make_ring(&d);

	(void)state;
	write_samples(5);
	ring_snapshot(r);
	assert_int_equal(ring_peek(r), UINT64_MAX);
	assert_int_equal(ring_dump(r, 0, UINT64_MAX), 0);
	assert_int_equal(take_dump(r, 5), 1);
	assert_int_equal(ring_whole_from(r), 0);
	free_ring(r, d);
}

static void keeps_the_newest(void **state)
{
	struct decoder *d;
	struct ring *r = make_ring(&d);
	uint64_t first;

	(void)state;
	write_samples(10000);
	assert_int_equal(ring_dump(r, 0, UINT64_MAX), 0);
	first = take_dump(r, 10000);
	/* 56 bytes each on average, and one that is no longer whole. */
	assert_in_range(10000 - first + 1, PAGE / 56 - 2, PAGE / 56 + 1);
	assert_int_equal(ring_whole_from(r), first);
	free_ring(r, d);
}

static void no_record_twice(void **state)
{
	struct decoder *d;
	struct ring *r = make_ring(&d);
	uint64_t expected = 1;

	(void)state;
	for (uint64_t n = 1; n < 60; n++) {
		write_samples(n);
		assert_int_equal(ring_dump(r, 0, UINT64_MAX), 0);
		assert_int_equal(take_dump(r, next_time - 1), expected);
		expected = next_time;
	}
	assert_int_equal(ring_dump(r, 0, UINT64_MAX), 0);
	assert_int_equal(ring_peek(r), UINT64_MAX);
	free_ring(r, d);
}

static void newer_ones_wait_for_the_next(void **state)
{
	struct decoder *d;
	struct ring *r = make_ring(&d);

	(void)state;
	write_samples(40);
	assert_int_equal(ring_dump(r, 0, 25), 0);
	assert_int_equal(take_dump(r, 25), 1);
	assert_int_equal(ring_dump(r, 0, 25), 0);
	assert_int_equal(ring_peek(r), UINT64_MAX);
	write_samples(10);
	assert_int_equal(ring_dump(r, 0, UINT64_MAX), 0);
	assert_int_equal(take_dump(r, 50), 26);
	free_ring(r, d);
}

static void old_ones_are_left_out(void **state)
{
	struct decoder *d;
	struct ring *r = make_ring(&d);

	(void)state;
	write_samples(40);
	assert_int_equal(ring_dump(r, UINT64_MAX, UINT64_MAX), 0);
	assert_int_equal(ring_peek(r), UINT64_MAX);
	assert_int_equal(ring_whole_from(r), 0);
	free_ring(r, d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_nothing_by_itself),
		cmocka_unit_test(keeps_the_newest),
		cmocka_unit_test(no_record_twice),
		cmocka_unit_test(newer_ones_wait_for_the_next),
		cmocka_unit_test(old_ones_are_left_out),
	};

	return cmocka_run_group_tests_name("ring_backward", tests, NULL, NULL);
}
