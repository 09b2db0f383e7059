/* SPDX-License-Identifier: GPL-2.0-only */
/* A request wakes a poll() that begins after its signal, and leaves the rest to be done only if
 * much was done. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include "process/signals.h"

static int is_readable(void)
{
	struct pollfd fd = {.fd = signals_fd(), .events = POLLIN};

	return poll(&fd, 1, 0);
}

static void wakes_later_polls(void **state)
{
	static const int numbers[] = {SIGUSR1, SIGUSR2, SIGINT};

	(void)state;
	signals_install_requests();
	raise(SIGUSR1);
	signals_install();
	assert_int_equal(is_readable(), 1); /* for the request before */
	signals_clear_fd();
	assert_true(signals_take_reopen());
	for (int i = 0; i < 3; i++) {
		assert_int_equal(is_readable(), 0);
		raise(numbers[i]);
		assert_int_equal(is_readable(), 1);
		signals_clear_fd();
		signals_clear_fd(); /* does not wait */
	}
	assert_true(signals_take_reopen());
	assert_true(signals_take_report());
	assert_true(signals_stop_requested());
}

/* After the request of the test before. */
static void leaves_the_rest_after_much(void **state)
{
	uint64_t few = 1000, much = 1000;

	(void)state;
	while (!signals_overdue(&much, much + 70, 70))
		usleep(10000);
	assert_false(signals_overdue(&few, few + 69, 70));
	assert_int_equal(few, 1000);
	assert_int_equal(much, 1000);
}

static void is_on_time(void **state)
{
	uint64_t before = 0;

	(void)state;
	assert_false(signals_overdue(&before, 100000, 70));
	assert_int_equal(before, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_on_time),
		cmocka_unit_test(wakes_later_polls),
		cmocka_unit_test(leaves_the_rest_after_much),
	};

	return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
