/* SPDX-License-Identifier: GPL-2.0-only */
/* Pings between two simulated clocks, over a channel with random delays in both directions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include "clocks/ping_bounds.h"

static uint64_t delay(void)
{
	return 1000 + (rand() % 100 == 0 ? rand() % 10000 : rand() % 200000);
}

/* Pings every ms for ten seconds. Their clock is ahead by `ahead`, and faster by `drift`. */
static double check_bounds(uint64_t ahead, double drift, double bound)
{
	struct ping_bounds bounds;
	double error, last = INFINITY;

	srand(1);
	ping_bounds_init(&bounds, bound);
	for (uint64_t ms = 1; ms <= 10000; ms++) {
		uint64_t t[4], offset;

		t[0] = ms * 1000000;
		for (int i = 1; i < 4; i++)
			t[i] = t[i - 1] + delay();
		assert_int_equal(ping_bounds_add(&bounds, t[0],
						 t[1] + ahead + (uint64_t)(t[1] * drift),
						 t[2] + ahead + (uint64_t)(t[2] * drift), t[3]),
				 0);
		offset = ping_bounds_offset(&bounds, t[3], &error);
		assert_true(fabs((double)(int64_t)(offset - ahead) - t[3] * drift) <= error + 2);
		if (!bound)
			assert_true(error <= last);
		last = error;
	}
	assert_int_equal(bounds.pings, 10000);
	return last;
}

static void test_equal_rates(void **state)
{
	double error;

	(void)state;
	error = check_bounds(123456789, 0, 0);
	assert_true(error >= 1000 && error < 3000); /* the shortest delay is 1000 */
}

static void test_negative_offset_and_wrap(void **state)
{
	(void)state;
	check_bounds(-5000000000ull, 0, 0);
	check_bounds(1ull << 63, 0, 0);
	check_bounds((1ull << 63) - 3000000000ull, 0, 0);
}

static void test_drift(void **state)
{
	double error;

	(void)state;
	error = check_bounds(777, 50e-6, 100e-6);
	assert_true(error < 20000);
	check_bounds(777, 100e-6, 100e-6);
	check_bounds(-777, 0, 100e-6);
}

static void test_a_clock_that_was_set(void **state)
{
	struct ping_bounds bounds;
	uint64_t offset;
	double error;

	(void)state;
	ping_bounds_init(&bounds, 0);
	assert_int_equal(ping_bounds_add(&bounds, 1000, 5100, 5200, 1300), 0);
	assert_int_equal(ping_bounds_add(&bounds, 2000, 8100, 8200, 2300), -ESTALE);
	assert_int_equal(bounds.pings, 1);
	offset = ping_bounds_offset(&bounds, 2300, &error);
	assert_int_equal(offset, 6000);
	assert_true(error == 100);
	assert_int_equal(ping_bounds_add(&bounds, 3000, 7100, 7200, 3300),
			 -ESTALE); /* back again */
	assert_int_equal(ping_bounds_offset(&bounds, 3300, &error), 4000);
}

static void test_nonsense_is_ignored(void **state)
{
	struct ping_bounds bounds;

	(void)state;
	ping_bounds_init(&bounds, 0);
	assert_int_equal(ping_bounds_add(&bounds, 1000, 5100, 5200, 999), -EINVAL);
	assert_int_equal(ping_bounds_add(&bounds, 1000, 5100, 5000, 1300), -EINVAL);
	assert_int_equal(ping_bounds_add(&bounds, 1000, 5100, 5500, 1300),
			 -EINVAL); /* took too long */
	assert_int_equal(bounds.pings, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_rates),
		cmocka_unit_test(test_negative_offset_and_wrap),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_a_clock_that_was_set),
		cmocka_unit_test(test_nonsense_is_ignored),
	};

	return cmocka_run_group_tests_name("ping_bounds", tests, NULL, NULL);
}
