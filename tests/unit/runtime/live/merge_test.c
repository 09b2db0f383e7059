/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings in plain memory, written to as the kernel would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "event.h"
#include "live/merge.h"
#include "live/ring.h"

enum { RINGS = 3, PAGES = 1, PAGE = 4096, MAX = 64 };

struct record {
	struct perf_event_header header;
	uint64_t time;
};

static struct decoder *decoder;
static struct perf_event_mmap_page *pages[RINGS];
static struct merge *merge;
static struct slot out[MAX];
static uint64_t horizon;

static void set_up(bool has_clock)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_TIME};

	decoder = decoder_new();
	assert_int_equal(decoder_add_attr(decoder, &attr, NULL), 0);
	assert_int_equal(decoder_check(decoder, NULL), 0);
	merge = merge_new(has_clock);
	for (int i = 0; i < RINGS; i++) {
		pages[i] = aligned_alloc(PAGE, (1 + PAGES) * PAGE);
		memset(pages[i], 0, PAGE);
		pages[i]->data_offset = PAGE;
		pages[i]->data_size = PAGES * PAGE;
		assert_int_equal(merge_add(merge, ring_new(pages[i], PAGES, decoder)), 0);
	}
	horizon = 0;
}

static void tear_down(void)
{
	merge_free(merge);
	decoder_free(decoder);
	for (int i = 0; i < RINGS; i++)
		free(pages[i]);
}

static void write_record(int ring, uint64_t time)
{
	struct record rec = {.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(rec)},
			     .time = time};

	memcpy((char *)pages[ring] + PAGE + pages[ring]->data_head % PAGE, &rec, sizeof(rec));
	pages[ring]->data_head += sizeof(rec);
}

static void expect(int n, const uint64_t *times)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(out[i].time, times[i]);
}

static void test_order(void **state)
{
	static const uint64_t times[] = {1, 2, 3, 4, 5, 6, 7};

	(void)state;
	set_up(false);
	for (int i = 0; i < 7; i++)
		write_record(i * i % RINGS, times[i]);
	merge_stop(merge);
	assert_int_equal(merge_next(merge, out, 3, UINT64_MAX, &horizon), 3);
	expect(3, times);
	assert_int_equal(horizon, 0);
	assert_false(merge_drained(merge));
	assert_int_equal(merge_next(merge, out, MAX, 5, &horizon), 2);
	expect(2, times + 3);
	assert_int_equal(horizon, 5);
	assert_int_equal(merge_next(merge, out, MAX, UINT64_MAX, &horizon), 2);
	expect(2, times + 5);
	assert_int_equal(merge_delivered(merge), 7);
	assert_true(merge_drained(merge));
	tear_down();
}

/* The first ring shows how far all others have written. */
static void test_without_clock(void **state)
{
	(void)state;
	set_up(false);
	write_record(0, 10);
	write_record(1, 5);
	write_record(1, 20);
	assert_int_equal(merge_next(merge, out, MAX, UINT64_MAX, &horizon), 2);
	expect(2, (const uint64_t[]){5, 10});
	assert_int_equal(horizon, 10);
	assert_int_equal(merge_time(merge), 0);
	tear_down();
}

/* More records with one time than fit, and one that is far ahead of all others. */
static void test_one_time(void **state)
{
	int n, all = 0;

	(void)state;
	set_up(false);
	for (int i = 0; i < 3 * MAX; i++)
		write_record(i % RINGS, 5);
	write_record(0, UINT64_MAX / 2);
	write_record(1, 6);
	merge_stop(merge);
	while ((n = merge_next(merge, out, MAX, 5, &horizon)) > 0) {
		for (int i = 0; i < n; i++)
			assert_int_equal(out[i].time, 5);
		all += n;
	}
	assert_int_equal(all, 3 * MAX);
	assert_false(merge_drained(merge));
	assert_int_equal(merge_next(merge, out, MAX, UINT64_MAX, &horizon), 2);
	expect(2, (const uint64_t[]){6, UINT64_MAX / 2});
	assert_true(merge_drained(merge));
	tear_down();
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Records younger than the slack are held back; a record that follows a younger one widens it. */
static void test_slack(void **state)
{
	uint64_t now, slack;

	(void)state;
	set_up(true);
	now = now_ns();
	slack = merge_slack(merge);
	write_record(0, now - 3 * slack);
	write_record(1, now + 1000000000);
	assert_int_equal(merge_next(merge, out, MAX, UINT64_MAX, &horizon), 1);
	assert_int_equal(out[0].flags & EVENT_LATE, 0);
	assert_in_range(horizon, now - slack, now + 1000000000);
	write_record(2, now - 10 * slack);
	assert_int_equal(merge_next(merge, out, MAX, UINT64_MAX, &horizon), 1);
	assert_int_equal(out[0].flags & EVENT_LATE, EVENT_LATE);
	assert_true(merge_slack(merge) > 7 * slack);
	for (int i = 0; i < 1000; i++)
		merge_relax(merge);
	assert_in_range(merge_slack(merge), slack, slack + 64);
	tear_down();
}

static void test_remove(void **state)
{
	struct ring *last;

	(void)state;
	set_up(false);
	last = merge_ring(merge, 2);
	write_record(0, 1);
	write_record(2, 2);
	merge_remove(merge, 0);
	assert_int_equal(merge_nr_rings(merge), 2);
	assert_ptr_equal(merge_ring(merge, 0), last);
	merge_stop(merge);
	assert_int_equal(merge_next(merge, out, MAX, UINT64_MAX, &horizon), 1);
	assert_int_equal(out[0].time, 2);
	assert_int_equal(out[0].ring, 0);
	tear_down();
}

/* The kernel gets its space back when the records are done, not before. */
static void test_release(void **state)
{
	(void)state;
	set_up(false);
	write_record(0, 1);
	write_record(0, 2);
	merge_stop(merge);
	assert_int_equal(merge_next(merge, out, 1, UINT64_MAX, &horizon), 1);
	assert_int_equal(pages[0]->data_tail, 0);
	merge_release(merge);
	assert_int_equal(pages[0]->data_tail, sizeof(struct record));
	assert_int_equal(merge_next(merge, out, MAX, UINT64_MAX, &horizon), 1);
	merge_release(merge);
	assert_int_equal(pages[0]->data_tail, 2 * sizeof(struct record));
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	 cmocka_unit_test(test_without_clock),
		cmocka_unit_test(test_slack),	 cmocka_unit_test(test_remove),
		cmocka_unit_test(test_one_time), cmocka_unit_test(test_release),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
