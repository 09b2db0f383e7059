/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/live/count_sums.c: sums by row, scaled if hardware was shared, reported once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "live/count_sums.h"

static const struct count *at(const struct counts *c, int32_t id, uint32_t event)
{
	for (uint32_t row = 0; row < c->nr_rows; row++)
		if (c->ids[row] == id)
			return &c->values[row * c->nr_events + event];
	return NULL;
}

static void rows_are_sorted_and_stay(void **state)
{
	struct count_sums *t = count_sums_new(2);
	struct counts c;

	(void)state;
	for (int32_t id = 99; id >= 0; id -= 3)
		assert_int_equal(count_sums_expect(t, id, id % 2), 0);
	count_sums_add(t, 96, 0, 7, 1, 1);
	assert_int_equal(count_sums_expect(t, -5, 1), 0);
	count_sums_take(t, &c);
	assert_int_equal(c.nr_rows, 35);
	for (uint32_t row = 1; row < c.nr_rows; row++)
		assert_true(c.ids[row - 1] < c.ids[row]);
	assert_true(at(&c, 96, 0)->value == 7);
	assert_true(at(&c, 96, 1)->share < 0);
	assert_true(at(&c, -5, 0)->share < 0);
	assert_true(at(&c, -5, 1)->share == 1);
	count_sums_free(t);
}

static void counts_are_reported_once(void **state)
{
	struct count_sums *t = count_sums_new(1);
	struct counts c;

	(void)state;
	count_sums_expect(t, 3, 0);
	count_sums_add(t, 3, 0, 10, 100, 100);
	count_sums_add(t, 3, 0, 5, 100, 100); /* another cgroup of the CPU */
	count_sums_take(t, &c);
	assert_true(at(&c, 3, 0)->value == 15);
	count_sums_take(t, &c);
	assert_true(at(&c, 3, 0)->value == 0);
	assert_true(at(&c, 3, 0)->share == 1); /* a thread that slept missed nothing */
	count_sums_free(t);
}

static void shared_counters_are_scaled(void **state)
{
	struct count_sums *t = count_sums_new(1);
	struct counts c;

	(void)state;
	count_sums_expect(t, 0, 0);
	count_sums_add(t, 0, 0, 300, 1000, 250);
	count_sums_take(t, &c);
	assert_true(at(&c, 0, 0)->value == 1200);
	assert_true(at(&c, 0, 0)->share == 0.25);
	count_sums_add(t, 0, 0, 0, 1000, 0); /* never on the hardware */
	count_sums_take(t, &c);
	assert_true(at(&c, 0, 0)->value == 0);
	assert_true(at(&c, 0, 0)->share == 0);
	count_sums_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sorted_and_stay),
		cmocka_unit_test(counts_are_reported_once),
		cmocka_unit_test(shared_counters_are_scaled),
	};

	return cmocka_run_group_tests_name("sums", tests, NULL, NULL);
}
