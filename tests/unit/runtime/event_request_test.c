/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <linux/perf_event.h>
#include "event_request.h"

/* Sets a bit field in both structs and compares all of their common bytes. */
#define CHECK_BITS(member, value)                                    \
	do {                                                         \
		struct perf_event_attr theirs = {.member = (value)}; \
		struct perf_attr ours;                               \
                                                                     \
		memset(&ours, 0, sizeof(ours));                      \
		ours.member = (value);                               \
		assert_memory_equal(&ours, &theirs, sizeof(ours));   \
	} while (0)

static void test_bits(void **state)
{
	(void)state;
	CHECK_BITS(disabled, 1);
	CHECK_BITS(inherit, 1);
	CHECK_BITS(pinned, 1);
	CHECK_BITS(exclusive, 1);
	CHECK_BITS(exclude_user, 1);
	CHECK_BITS(exclude_kernel, 1);
	CHECK_BITS(exclude_hv, 1);
	CHECK_BITS(exclude_idle, 1);
	CHECK_BITS(mmap, 1);
	CHECK_BITS(comm, 1);
	CHECK_BITS(freq, 1);
	CHECK_BITS(inherit_stat, 1);
	CHECK_BITS(enable_on_exec, 1);
	CHECK_BITS(task, 1);
	CHECK_BITS(watermark, 1);
	CHECK_BITS(precise_ip, 2);
	CHECK_BITS(mmap_data, 1);
	CHECK_BITS(sample_id_all, 1);
	CHECK_BITS(exclude_host, 1);
	CHECK_BITS(exclude_guest, 1);
	CHECK_BITS(exclude_callchain_kernel, 1);
	CHECK_BITS(exclude_callchain_user, 1);
}

/* A copy outlives the strings it was made from. */
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
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests_name("event_request", tests, NULL, NULL);
}
