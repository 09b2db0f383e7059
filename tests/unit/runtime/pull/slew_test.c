/* SPDX-License-Identifier: GPL-2.0-only */
/* Times of a sender whose clock turns out to be another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "pull/slew.h"

/* As long as nothing new is learned, no time is changed, not even that of a late record. */
static void keeps_right_times(void **state)
{
	static const uint64_t times[] = {100, 0, 200, 150, 200, 201, 300};
	struct slew s = {};

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		assert_int_equal(slew_time(&s, times[i] + !!times[i] * 1000, times[i]), times[i]);
	assert_int_equal(s.ahead, 0);
}

/* The clock is set back by 500: times go on from the last one, at half speed, until they are right.
 */
static void goes_on_in_order(void **state)
{
	struct slew s = {};
	uint64_t last = slew_time(&s, 1000, 1000);

	(void)state;
	for (uint64_t theirs = 1010; theirs <= 3000; theirs += 10) {
		uint64_t time = theirs - 500, moved = slew_time(&s, theirs, time);

		assert_true(moved > last || theirs == 1010);
		assert_true(moved >= time);
		assert_int_equal(moved == time, theirs >= 1010 + 2 * 490);
		last = moved;
	}
	assert_int_equal(s.ahead, 0);
}

/* A second correction while the first one is not over, and a late record. */
static void corrects_twice(void **state)
{
	struct slew s = {};

	(void)state;
	slew_time(&s, 1000, 1000);
	assert_int_equal(slew_time(&s, 1100, 900), 1000);
	assert_int_equal(slew_time(&s, 1120, 920), 1010);
	assert_int_equal(slew_time(&s, 1110, 910), 1005);
	assert_int_equal(slew_time(&s, 1130, 830), 1010);
	assert_int_equal(slew_time(&s, 1150, 850), 1020);
}

/* What was promised to be complete counts like a time, and another stream has its own clock. */
static void keeps_promises(void **state)
{
	struct slew s = {};

	(void)state;
	slew_time(&s, 1000, 5000);
	slew_promise(&s, 4000);
	assert_int_equal(slew_time(&s, 1010, 5010), 5010);
	slew_promise(&s, 6000);
	slew_promise(&s, UINT64_MAX);
	assert_int_equal(slew_time(&s, 1020, 5020), 6000);
	assert_int_equal(slew_time(&s, 10, 5500), 5500 + 980 - 240);
	slew_restart(&s);
	assert_int_equal(slew_time(&s, 20, 5600), 5600 + 980 - 290);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_right_times),
		cmocka_unit_test(goes_on_in_order),
		cmocka_unit_test(corrects_twice),
		cmocka_unit_test(keeps_promises),
	};

	return cmocka_run_group_tests_name("slew", tests, NULL, NULL);
}
