/* SPDX-License-Identifier: GPL-2.0-only */
/* Finding the device in a tree of plain files, and the choice of a sample. The device itself needs
 * a guest: see tests/guest/runtime/clocks/kvm_ptp_guest.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "clocks/kvm_ptp.h"
#include "error.h"

static char root[] = "/tmp/kvm_ptp_test.XXXXXX";

static void in_root(const char *commands)
{
	char command[512];

	snprintf(command, sizeof(command), "cd %s && %s", root, commands);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	in_root("rm -rf $PWD");
	return 0;
}

static void test_device(void **state)
{
	struct kvm_ptp_reading reading;
	struct kvm_ptp *ptp;
	struct error err;

	(void)state;
	/* This machine is no guest of KVM. */
	assert_null(kvm_ptp_open(root, &err));
	assert_string_equal(err.text, "");
	in_root("mkdir -p sys/devices/system/clocksource/clocksource0 sys/class/ptp/ptp0 dev && "
		"echo 'tsc kvm-clock acpi_pm ' "
		">sys/devices/system/clocksource/clocksource0/available_clocksource && "
		"echo ena-ptp >sys/class/ptp/ptp0/clock_name");
	assert_null(kvm_ptp_open(root, &err));
	assert_string_equal(err.text, "KVM's PTP clock is missing: modprobe ptp_kvm");
	in_root("mkdir sys/class/ptp/ptp1 && "
		"echo 'KVM virtual PTP' >sys/class/ptp/ptp1/clock_name");
	assert_null(kvm_ptp_open(root, &err));
	assert_non_null(strstr(err.text, "/dev/ptp1: No such file"));
	in_root("touch dev/ptp1");
	ptp = kvm_ptp_open(root, &err);
	assert_non_null(ptp);
	assert_string_equal(err.text, "");
	assert_false(kvm_ptp_read(ptp, &reading)); /* it is no device */
	kvm_ptp_close(ptp);
}

static void test_tightest(void **state)
{
	static const struct ptp_clock_time ts[] = {
		{.sec = 9, .nsec = 999990000}, {.sec = 50, .nsec = 1},
		{.sec = 10, .nsec = 0},	       {.sec = 50, .nsec = 12000},
		{.sec = 10, .nsec = 4001},     {.sec = 50, .nsec = 30000},
		{.sec = 10, .nsec = 9000},
	};
	uint64_t real = 0;
	uint32_t error = 0;

	(void)state;
	assert_int_equal(kvm_ptp_tightest(ts, 3, &real, &error), 50000012000);
	assert_int_equal(real, 10000002000);
	assert_int_equal(error, 2001);
	/* A guest whose clock was set back in between has no tight sample. */
	assert_int_equal(kvm_ptp_tightest((const struct ptp_clock_time[]){{.sec = 2}, {}, {}}, 1,
					  &real, &error),
			 0);
	assert_int_equal(error, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_tightest),
	};

	return cmocka_run_group_tests_name("kvm_ptp", tests, set_up, tear_down);
}
