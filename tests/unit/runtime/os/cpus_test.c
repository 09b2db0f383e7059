/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "os/cpus.h"
#include "error.h"
#include "os/hotplug.h"

static const char *round_trip(const char *text)
{
	static char buf[256];
	struct cpus set;

	assert_int_equal(cpus_parse(&set, text, NULL), 0);
	return cpus_text(&set, buf, sizeof(buf));
}

static void test_lists(void **state)
{
	(void)state;
	assert_string_equal(round_trip("0"), "0");
	assert_string_equal(round_trip("0-3,7"), "0-3,7");
	assert_string_equal(round_trip("7,0,1,3,2"), "0-3,7");
	assert_string_equal(round_trip("62-65,127-128,8191"), "62-65,127-128,8191");
	assert_string_equal(round_trip("0-8191"), "0-8191");
}

static void test_bad_lists(void **state)
{
	static const char *const bad[] = {"",	    "a",  "1-",	  "-1",	   "3-1",
					  "1,",	    ",1", "1,,2", "1-2-3", "8192",
					  "0-8192", " 1", "1 ",	  "1\n",   "99999999999999999999"};
	struct cpus set;
	struct error err;
	char message[128];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = 0;
		assert_int_equal(cpus_parse(&set, bad[i], &err), -22);
		assert_non_null(strstr(err.text, "(expected e.g. 0-3,7)"));
	}
	snprintf(message, sizeof(message), "invalid CPU list '3-1' (expected e.g. 0-3,7)");
	cpus_parse(&set, "3-1", &err);
	assert_string_equal(err.text, message);
}

static void test_sets(void **state)
{
	struct cpus a, b;
	char buf[64];

	(void)state;
	cpus_parse(&a, "0-9,100", NULL);
	cpus_parse(&b, "5-200", NULL);
	cpus_and(&a, &b);
	assert_string_equal(cpus_text(&a, buf, sizeof(buf)), "5-9,100");
	cpus_parse(&b, "6-8,300", NULL);
	cpus_subtract(&a, &b);
	assert_string_equal(cpus_text(&a, buf, sizeof(buf)), "5,9,100");
	assert_true(cpus_has(&a, 9));
	assert_false(cpus_has(&a, 6));
	assert_false(cpus_has(&a, CPUS_MAX));
	assert_int_equal(cpus_next(&a, -1), 5);
	assert_int_equal(cpus_next(&a, 9), 100);
	assert_int_equal(cpus_next(&a, 100), -1);
	assert_int_equal(cpus_next(&a, CPUS_MAX - 1), -1);
	cpus_remove(&a, 5);
	cpus_remove(&a, 6);
	assert_false(cpus_has(&a, 5));
	assert_int_equal(cpus_next(&a, -1), 9);
	cpus_subtract(&a, &a);
	assert_string_equal(cpus_text(&a, buf, sizeof(buf)), "none");
}

static void test_text_is_truncated(void **state)
{
	struct cpus set = {0};
	char buf[12];

	(void)state;
	for (uint32_t cpu = 0; cpu < 100; cpu += 2)
		cpus_add(&set, cpu);
	assert_string_equal(cpus_text(&set, buf, sizeof(buf)), "0,2,4,6...");
}

static void test_online(void **state)
{
	struct cpus set;

	(void)state;
	assert_int_equal(cpus_online(&set, NULL), 0);
	assert_true(cpus_next(&set, -1) >= 0);
}

static int cpu_of(const char *message, size_t size)
{
	return hotplug_cpu(message, size);
}

static void test_uevents(void **state)
{
	static const char whole[] = "offline@/devices/system/cpu/cpu12\0ACTION=offline\0SEQNUM=1";

	(void)state;
	assert_int_equal(cpu_of(whole, sizeof(whole)), 12);
	assert_int_equal(cpu_of("online@/devices/system/cpu/cpu0", 32), 0);
	assert_int_equal(cpu_of("online@/devices/system/cpu/cpu17", 31), 1); /* no NUL: truncated */
	assert_int_equal(cpu_of("online@/devices/system/cpu/cpu1/cache", 38), -1);
	assert_int_equal(cpu_of("online@/devices/system/cpu/cpu", 31), -1);
	assert_int_equal(cpu_of("online@/devices/system/cpu/cpu8192", 35), -1);
	assert_int_equal(cpu_of("online@/devices/system/memory/memory3", 38), -1);
	assert_int_equal(cpu_of("add@/devices/system/cpu/cpu3", 29), -1);
	assert_int_equal(cpu_of("", 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),  cmocka_unit_test(test_bad_lists),
		cmocka_unit_test(test_sets),   cmocka_unit_test(test_text_is_truncated),
		cmocka_unit_test(test_online), cmocka_unit_test(test_uevents),
	};

	return cmocka_run_group_tests_name("cpus", tests, NULL, NULL);
}
