/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps of clocks whose truth is known: the readings are off by up to their error. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include "clocks/clock_map.h"

/* A TSC of 2.6 GHz that started at `zero`, with a rate that drifts by up to 20 ppm within minutes.
 */
static double true_tsc(double ns)
{
	return 2.6 * ns + 2.6 * 20e-6 * 60e9 * sin(ns / 60e9);
}

static double random_error(double size)
{
	return (rand() / (double)RAND_MAX * 2 - 1) * size;
}

static void check_follows(uint64_t zero_ns, uint64_t zero_tsc, double beyond)
{
	struct clock_map *map = clock_map_new(0);
	const double read_error = 50; /* cycles */
	double worst = 0;

	srand(1);
	assert_non_null(map);
	for (int second = 0; second < 120; second++) {
		double at = second * 1e9;

		assert_false(clock_map_add(
			map, zero_ns + (uint64_t)at,
			zero_tsc + (uint64_t)(int64_t)(true_tsc(at) + random_error(read_error)),
			read_error + 1));
	}
	for (double at = 1e9; at < 119e9 + beyond; at += 7654321) {
		uint64_t from = zero_ns + (uint64_t)at;
		double truth = true_tsc((uint64_t)at);
		double off = (double)(int64_t)(clock_map_to(map, from) - zero_tsc) - truth;
		double back =
			(double)(int64_t)(clock_map_from(map, zero_tsc + (uint64_t)truth) - from);
		double error = clock_map_error(map, from);

		assert_true(fabs(off) <= error + 1);
		assert_true(fabs(back) <= error / 2.6 + 2);
		worst = fmax(worst, fabs(off));
	}
	assert_true(worst > 20); /* the readings were noisy */
	assert_true(clock_map_error(map, zero_ns + 50500000000) <
		    600); /* it still tells something */
	clock_map_free(map);
}

static void test_truth_is_within_the_error(void **state)
{
	(void)state;
	check_follows(1000, 77, 0);
}

static void test_beyond_the_last_pair(void **state)
{
	(void)state;
	check_follows(1000, 77, 1e9);
}

static void test_clocks_wrap(void **state)
{
	(void)state;
	check_follows(1000, -100000000000ull, 1e9); /* the TSC of a guest with a negative offset */
	check_follows(-30000000000ull, 5, 1e9);
}

static void test_before_the_first_pair(void **state)
{
	struct clock_map *map = clock_map_new(0);

	(void)state;
	clock_map_add(map, 5000000, 10000000, 1);
	clock_map_add(map, 6000000, 12000000, 1);
	assert_int_equal(clock_map_to(map, 4000000), 8000000);
	assert_int_equal(clock_map_from(map, 8000000), 4000000);
	assert_true(clock_map_error(map, 4000000) >= 3); /* 1 there, and the rate is off by 2e-6 */
	assert_true(clock_map_error(map, 5500000) < 2.001);
	clock_map_free(map);
}

static void test_one_pair(void **state)
{
	struct clock_map *map = clock_map_new(0), *known = clock_map_new(3);

	(void)state;
	assert_false(clock_map_ready(map));
	clock_map_add(map, 100, 200, 1);
	clock_map_add(known, 100, 200, 1);
	assert_false(clock_map_ready(map));
	assert_true(clock_map_ready(known));
	assert_int_equal(clock_map_to(known, 110), 230);
	assert_int_equal(clock_map_from(known, 230), 110);
	assert_true(clock_map_error(known, 110) == 1);
	clock_map_add(known, 200, 300, 1);
	assert_int_equal(clock_map_to(known, 110), 210); /* the pairs tell better */
	clock_map_clear(known);
	assert_false(clock_map_ready(known));
	clock_map_free(known);
	clock_map_free(map);
}

static void test_clock_that_was_set_back(void **state)
{
	struct clock_map *map = clock_map_new(1);

	(void)state;
	assert_int_equal(clock_map_add(map, 100, 1000, 0), 0);
	assert_int_equal(clock_map_add(map, 200, 900, 0), -ERANGE);
	assert_int_equal(clock_map_add(map, 90, 1100, 0), -ERANGE);
	assert_int_equal(clock_map_add(map, 100, 1000, 0), -ERANGE);
	assert_int_equal(clock_map_add(map, 200, 1100, 0), 0);
	assert_int_equal(clock_map_to(map, 150), 1050);
	clock_map_free(map);
}

/* NTP changes the rate of CLOCK_MONOTONIC at any time, here in the middle between two pairs. */
static void test_sudden_change_of_the_rate(void **state)
{
	struct clock_map *map = clock_map_new(0);
	double to = 1e6;

	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_false(
			clock_map_add(map, i * 1000000, (uint64_t)(to + random_error(50)), 51));
		to += i < 4 ? 3e6 : i > 4 ? 3e6 + 1500 : 3e6 + 750; /* 500 ppm */
	}
	for (uint64_t at = 100000; at < 7000000; at += 12345) {
		double truth = 1e6 + 3.0 * at + (at > 4500000 ? (at - 4500000) * 0.0015 : 0);

		assert_true(fabs((double)clock_map_to(map, at) - truth) <=
			    clock_map_error(map, at) + 1);
	}
	clock_map_free(map);
}

/* More pairs than a map holds: none of the recent ones is dropped, the old ones thin out. */
static void test_long_runs(void **state)
{
	struct clock_map *map = clock_map_new(0);
	uint64_t last = 0, n = 100000;

	(void)state;
	srand(2);
	for (uint64_t i = 0; i < n; i++)
		assert_false(clock_map_add(
			map, i * 1000000, (uint64_t)(int64_t)(true_tsc(i * 1e6) + random_error(50)),
			51));
	for (uint64_t i = 0; i < n; i++) {
		uint64_t from = i * 1000000 + 500000, to = clock_map_to(map, from);

		assert_true(fabs((double)to - true_tsc(from)) <= clock_map_error(map, from) + 1);
		assert_true(to > last);
		last = to;
	}
	assert_true(clock_map_error(map, (n - 100) * 1000000 + 500000) < 150);
	clock_map_free(map);
}

/* A converted time does not change when more pairs come. */
static void test_times_are_stable(void **state)
{
	struct clock_map *map = clock_map_new(0);
	uint64_t before;

	(void)state;
	clock_map_add(map, 1000, 2000, 10);
	clock_map_add(map, 2000, 4020, 10);
	before = clock_map_to(map, 1500);
	for (int i = 3; i < 400; i++)
		clock_map_add(map, i * 1000, i * 2000 + i % 7, 10);
	assert_int_equal(clock_map_to(map, 1500), before);
	clock_map_free(map);
}

static void test_absurd_distances_are_defined(void **state)
{
	struct clock_map *map = clock_map_new(4);

	(void)state;
	clock_map_add(map, 0, 0, 0);
	clock_map_to(map, 1ull << 63);
	clock_map_to(map, (1ull << 63) - 1);
	clock_map_from(map, 1ull << 63);
	assert_int_equal(clock_map_to(map, 1ull << 40), 1ull << 42);
	clock_map_free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truth_is_within_the_error),
		cmocka_unit_test(test_beyond_the_last_pair),
		cmocka_unit_test(test_clocks_wrap),
		cmocka_unit_test(test_before_the_first_pair),
		cmocka_unit_test(test_one_pair),
		cmocka_unit_test(test_clock_that_was_set_back),
		cmocka_unit_test(test_sudden_change_of_the_rate),
		cmocka_unit_test(test_long_runs),
		cmocka_unit_test(test_times_are_stable),
		cmocka_unit_test(test_absurd_distances_are_defined),
	};

	return cmocka_run_group_tests_name("clock_map", tests, NULL, NULL);
}
