/* SPDX-License-Identifier: GPL-2.0-only */
/* A request wakes a poll() that begins after its signal. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes_later_polls),
	};

	return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
