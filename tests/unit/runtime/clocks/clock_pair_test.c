/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "clocks/clock_pair.h"
#include "error.h"

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* The readings of a pair lie between those around it, and pairs follow each other. */
static void test_pairs(void **state)
{
	struct clock_pair last = {0}, pair;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t mono = read_clock(CLOCK_MONOTONIC), tsc = clock_tsc();

		clock_pair_read(&pair);
		assert_true(mono <= pair.mono && pair.mono <= read_clock(CLOCK_MONOTONIC));
		assert_true(tsc <= pair.tsc && pair.tsc <= clock_tsc());
		assert_true(pair.mono > last.mono && pair.tsc >= last.tsc);
		assert_true(pair.error > 0);
		last = pair;
	}
}

/* The wall time is that of the pair's moment, not that of its own reading. */
static void test_wall_time(void **state)
{
	uint64_t least = UINT64_MAX;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct clock_pair pair;
		uint64_t from, real, off;

		clock_pair_read(&pair);
		from = read_clock(CLOCK_MONOTONIC);
		real = read_clock(CLOCK_REALTIME);
		off = pair.real - pair.mono -
		      (real - from); /* the second reading is a little later */
		if ((int64_t)off < 0)
			off = -off;
		least = off < least ? off : least;
	}
	assert_true(least < 5000);
}

static void test_the_verdict_has_a_reason(void **state)
{
	struct error err = {0};

	(void)state;
	if (!clock_tsc_check(&err))
		assert_string_equal(err.text, "");
	else
		assert_true(err.unavailable && strlen(err.text) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_wall_time),
		cmocka_unit_test(test_the_verdict_has_a_reason),
	};

	return cmocka_run_group_tests_name("clock_pair", tests, NULL, NULL);
}
