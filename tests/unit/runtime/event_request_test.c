/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <linux/perf_event.h>
#include "event_request.h"

/* A copy outlives the strings that it was made from. */
static void test_copy(void **state)
{
	char name[] = "sched:sched_switch", filter[] = "prev_pid > 0";
	struct event_request from = {.name = name, .filter = filter, .class = 9}, to;

	(void)state;
	from.attr.config = 42;
	assert_int_equal(event_request_copy(&to, &from), 0);
	memset(name, 'x', strlen(name));
	memset(filter, 'x', strlen(filter));
	assert_string_equal(to.name, "sched:sched_switch");
	assert_string_equal(to.filter, "prev_pid > 0");
	assert_null(to.cpus);
	assert_null(to.config1_text);
	assert_int_equal(to.class, 9);
	assert_int_equal(to.attr.config, 42);
	event_request_clear(&to);
	assert_null(to.name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests_name("event_request", tests, NULL, NULL);
}
