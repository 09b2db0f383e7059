/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes locked additions across cache lines, as many as requested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include "os/splitlock.h"

static void makes_them(void **state)
{
	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	assert_int_equal(splitlock_make(0), 0);
	assert_int_equal(splitlock_make(1000), 1000);
}

/* CPU time of the process while this thread sleeps. */
static void makes_them_in_a_thread(void **state)
{
	struct timespec nap = {.tv_nsec = 20000000}, before, after;

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	assert_int_equal(splitlock_start(), 0);
	do {
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	} while (after.tv_sec == before.tv_sec && after.tv_nsec - before.tv_nsec < 10000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_them),
		cmocka_unit_test(makes_them_in_a_thread),
	};

	return cmocka_run_group_tests_name("splitlock", tests, NULL, NULL);
}
