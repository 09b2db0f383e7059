/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "nearest.h"

static const char names[] = "sched:sched_switch\nsched:sched_waking\nsched:sched_wakeup\npid\n";

static void check(const char *want, const char *expected)
{
	char out[64] = "unset";

	assert_int_equal(nearest_name(names, want, out, sizeof(out)), strlen(expected));
	assert_string_equal(out, expected);
}

static void test_nearest(void **state)
{
	(void)state;
	check("sched:sched_switch", "sched:sched_switch");
	check("sched:sched_swich", "sched:sched_switch");
	check("shced:sched_wakeup", "sched:sched_wakeup");
	check("sched:sched_wakin", "sched:sched_waking");
	check("pdi", "pid"); /* swapped neighbours are one edit */
	check("pi", "pid");
	check("xyz", "");
	check("", "");
	check("sched", "");
}

static void test_bounds(void **state)
{
	char longest[200], out[4];

	(void)state;
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(nearest_name(longest, longest, out, sizeof(out)), 0);
	assert_int_equal(nearest_name(names, "pid", out, sizeof(out)), 3);
	assert_int_equal(nearest_name(names, "pid", out, 3), 0);
	assert_int_equal(nearest_name("", "pid", out, sizeof(out)), 0);
	/* The last name need not end with a newline, and empty lines are no names. */
	assert_int_equal(nearest_name("\n\npid", "pdi", out, sizeof(out)), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
