/* SPDX-License-Identifier: GPL-2.0-only */
/* What is missing according to the counts of groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "pull/gaps.h"
#include "wire/own_records.h"

enum { EPOCH = 7 };

/* A stream whose groups have ten events each, and the samples that were read of it. */
struct stream {
	struct gaps gaps;
	struct gaps_read read;
	uint64_t epoch;
	uint32_t unknown_before;
};

static void group(struct stream *s, uint64_t seq, uint64_t lost_before)
{
	struct wire_group g = {.seq = seq,
			       .first_time = seq * 100 + 1,
			       .last_time = seq * 100 + 100,
			       .events = 10,
			       .events_before = seq * 10,
			       .unknown_before = s->unknown_before,
			       .lost_before = lost_before};

	gaps_group(&s->gaps, &g, s->epoch, g.first_time, g.last_time, &s->read);
}

static void expect_gap(struct stream *s, uint64_t from, uint64_t to, uint64_t lost)
{
	const struct gap *gap = gaps_next(&s->gaps, UINT64_MAX);

	assert_non_null(gap);
	assert_int_equal(gap->from, from);
	assert_int_equal(gap->to, to);
	assert_int_equal(gap->lost, lost);
	gaps_take(&s->gaps);
}

static void expect_none(struct stream *s)
{
	assert_null(gaps_next(&s->gaps, UINT64_MAX));
}

static void break_link(struct stream *s)
{
	gaps_broken(&s->gaps, &s->read);
	s->read = (struct gaps_read){0};
}

static void test_complete(void **state)
{
	struct stream s = {.epoch = EPOCH};

	(void)state;
	for (int i = 3; i < 9; i++) {
		group(&s, i, 0);
		s.read.samples += 10;
	}
	expect_none(&s);
	assert_int_equal(s.gaps.made, 60);
	assert_int_equal(s.gaps.missing, 0);
	assert_false(s.gaps.is_unsure);
}

static void test_dropped(void **state)
{
	struct stream s = {.epoch = EPOCH};

	(void)state;
	group(&s, 0, 0);
	s.read.samples += 10;
	group(&s, 4, 0);
	assert_null(gaps_next(&s.gaps, 99));
	expect_gap(&s, 100, 401, 30);
	expect_none(&s);
	assert_int_equal(s.gaps.made, 50);
	assert_int_equal(s.gaps.missing, 30);
	assert_false(s.gaps.is_unsure);
}

/* Of five records that the kernel lost, the dropped groups reported what the others did not. */
static void test_kernel_losses_in_dropped_groups(void **state)
{
	struct stream s = {.epoch = EPOCH};

	(void)state;
	group(&s, 0, 0);
	s.read.samples += 10;
	s.read.lost += 2;
	group(&s, 2, 5);
	expect_gap(&s, 100, 201, 10 + 3);
	s.read.lost += 4;
	group(&s, 3, 9);
	expect_none(&s);
}

/* One of two losses of unknown size was in the dropped groups: it is not known how much is missing.
 */
static void test_unknown_losses_in_dropped_groups(void **state)
{
	struct stream s = {.epoch = EPOCH};

	(void)state;
	group(&s, 0, 0);
	s.read.samples += 10;
	s.read.unknown++;
	s.unknown_before = 2;
	group(&s, 2, 0);
	expect_gap(&s, 100, 201, 0);
	s.read.unknown++;
	s.unknown_before = 3;
	group(&s, 3, 0);
	expect_none(&s);
	break_link(&s);
	group(&s, 5, 0);
	expect_gap(&s, 400, 501, 10 + 10);
	s.unknown_before = 4;
	break_link(&s);
	group(&s, 7, 0);
	expect_gap(&s, 600, 701, 0);
	expect_none(&s);
}

/* A dropped group may have nothing but losses. */
static void test_dropped_without_events(void **state)
{
	struct wire_group empty = {.last_time = 300, .lost_before = 0};
	struct stream s = {.epoch = EPOCH};

	(void)state;
	gaps_group(&s.gaps, &empty, EPOCH, 200, 300, &s.read);
	empty.seq = 2;
	empty.lost_before = 4;
	gaps_group(&s.gaps, &empty, EPOCH, 400, 500, &s.read);
	expect_gap(&s, 300, 400, 4);
	empty.seq = 3;
	empty.lost_before = 9; /* in the group before, which did arrive */
	gaps_group(&s.gaps, &empty, EPOCH, 600, 700, &s.read);
	expect_none(&s);
}

static void test_broken_inside_a_group(void **state)
{
	struct stream s = {.epoch = EPOCH};

	(void)state;
	group(&s, 0, 0);
	s.read.samples += 10;
	group(&s, 1, 0);
	s.read.samples += 4;
	break_link(&s);
	expect_none(&s);
	group(&s, 5, 0);
	expect_gap(&s, 200, 501, 6 + 30);
	s.read.samples += 10;
	break_link(&s);
	group(&s, 6, 0);
	expect_none(&s);
	assert_int_equal(s.gaps.made, 10 + 10 + 30 + 10 + 10);
	assert_int_equal(s.gaps.missing, 6 + 30);
	assert_false(s.gaps.is_unsure);
}

static void test_another_sender(void **state)
{
	struct stream s = {.epoch = EPOCH};

	(void)state;
	group(&s, 5, 0);
	break_link(&s);
	s.epoch = EPOCH + 1;
	group(&s, 9, 0);
	expect_gap(&s, 600, 901, 0);
	expect_none(&s);
	assert_int_equal(s.gaps.made, 20);
	assert_true(s.gaps.is_unsure);
}

/* More gaps than there is room for are joined, and their sum stays right. */
static void test_many(void **state)
{
	struct stream s = {.epoch = EPOCH};
	uint64_t sum = 0, to = 0;
	const struct gap *gap;

	(void)state;
	for (int i = 0; i < 2 * GAPS; i++)
		group(&s, 2 * i, 0);
	for (; (gap = gaps_next(&s.gaps, UINT64_MAX)); gaps_take(&s.gaps)) {
		sum += gap->lost;
		to = gap->to;
	}
	assert_int_equal(sum, 10 * (2 * GAPS - 1));
	assert_int_equal(to, (4 * GAPS - 2) * 100 + 1);
	gaps_recycle(&s.gaps);
	group(&s, 4 * GAPS, 0);
	expect_gap(&s, (4 * GAPS - 1) * 100, 4 * GAPS * 100 + 1, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_kernel_losses_in_dropped_groups),
		cmocka_unit_test(test_unknown_losses_in_dropped_groups),
		cmocka_unit_test(test_dropped_without_events),
		cmocka_unit_test(test_broken_inside_a_group),
		cmocka_unit_test(test_another_sender),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("gaps", tests, NULL, NULL);
}
