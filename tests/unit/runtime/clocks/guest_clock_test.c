/* SPDX-License-Identifier: GPL-2.0-only */
/* A simulated host and guest: every reading is off by up to its error, and pings take their time.
 * Converted times must be the true ones within the stated error. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "clocks/clock_pair.h"
#include "clocks/guest_clock.h"
#include "clocks/ping_bounds.h"
#include "clocks/tsc_scale.h"
#include "clocks/vm.h"

enum { READ_ERROR = 30 };

static char root[] = "/tmp/guest_clock_test.XXXXXX";
static struct tsc_scale scale;
static const double ghz = 2.6;

/* True time, in ns since the start of the test: our clock is 7 h ahead, the guest's 50 s. */
static uint64_t host_clock(double t)
{
	return 25200000000000 + (uint64_t)t;
}
static uint64_t host_tsc(double t)
{
	return 70000000000000 + (uint64_t)(t * ghz);
}
static uint64_t guest_tsc(double t)
{
	return tsc_scale_to_guest(&scale, host_tsc(t));
}
/* NTP slews the guest's clock by 20 ppm, and changes its mind every 20 s. */
static uint64_t guest_clock(double t)
{
	return 50000000000 + (uint64_t)(t + 20e-6 * 20e9 / 6.28 * sin(t / 20e9 * 6.28));
}

/* The host's wall clock; the guest reads it by PTP. */
static uint64_t wall_offset = 1700000000000000000;

static double noise(double size)
{
	return (rand() / (double)RAND_MAX * 2 - 1) * size;
}

static void write_file(const char *name, const char *format, uint64_t value)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sys/kernel/debug/kvm/100-3/vcpu0/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, format, value);
	fclose(f);
}

static void write_scale(void)
{
	write_file("tsc-offset", "%ld\n", scale.offset);
	write_file("tsc-scaling-ratio", "%lu\n", scale.ratio);
	write_file("tsc-scaling-ratio-frac-bits", "%lu\n", scale.frac_bits);
}

static int set_up(void **state)
{
	char command[512];

	(void)state;
	if (!mkdtemp(root))
		return -1;
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p sys/kernel/debug/kvm/100-3/vcpu0 proc/100/fd proc/100/task && "
		 "echo qemu >proc/100/cmdline && ln -s anon_inode:kvm-vm proc/100/fd/3 && "
		 "ln -s anon_inode:kvm-vcpu:0 proc/100/fd/4",
		 root);
	return system(command);
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void pair(struct guest_clock *clock, double t, bool is_continuous)
{
	struct clock_pair ours = {.error = READ_ERROR};
	double later = t + 2000000; /* when the guest's reading has arrived */

	ours.tsc = host_tsc(later);
	ours.mono = host_clock(later + noise(READ_ERROR));
	ours.real = ours.mono + wall_offset + (int64_t)noise(READ_ERROR);
	guest_clock_host_pair(clock, &ours);
	assert_int_equal(guest_clock_pair(clock, guest_tsc(t), guest_clock(t + noise(READ_ERROR)),
					  READ_ERROR),
			 is_continuous);
}

static void ping(struct guest_clock *clock, double t)
{
	double at[4] = {t};

	for (int i = 1; i < 4; i++)
		at[i] = at[i - 1] + 20000 + rand() % 200000;
	guest_clock_ping(clock, host_tsc(at[0]), guest_tsc(at[1]), guest_tsc(at[2]),
			 host_tsc(at[3]));
}

/* Checks the events of a second, and returns the largest stated error. */
static double check_second(struct guest_clock *clock, double from)
{
	double worst = 0;

	for (double t = from; t < from + 1e9; t += 12345678) {
		double error = guest_clock_error(clock, guest_clock(t));
		double off = (int64_t)(guest_clock_to_host(clock, guest_clock(t)) - host_clock(t));

		assert_true(fabs(off) <= error + 3);
		worst = fmax(worst, error);
	}
	return worst;
}

static void follow(struct guest_clock *clock, int seconds, bool with_pings, double limit)
{
	double error = INFINITY;

	for (int s = 0; s < seconds; s++) {
		for (int i = 0; with_pings && i < 20; i++)
			ping(clock, s * 1e9 + i * 1e6);
		pair(clock, s * 1e9 + 50e6, true);
		assert_true(guest_clock_ready(clock) || s == 0);
		if (s > 2)
			error = check_second(clock, s * 1e9);
	}
	assert_true(error < limit);
}

static void test_offsets_of_kvm(void **state)
{
	static const struct tsc_scale scales[] = {
		{.offset = -69000000000000, .ratio = 1ull << 32, .frac_bits = 32},
		{.offset = 5, .ratio = (uint64_t)(2.0 / 2.6 * (1ull << 48)), .frac_bits = 48},
		{.offset = -7, .ratio = (uint64_t)(3.1 / 2.6 * (1ull << 32)), .frac_bits = 32},
	};

	(void)state;
	srand(1);
	for (size_t i = 0; i < sizeof(scales) / sizeof(*scales); i++) {
		struct guest_clock *clock;
		struct vm *vm;

		scale = scales[i];
		write_scale();
		vm = vm_find(root, "100", NULL);
		clock = guest_clock_new(vm);
		assert_string_equal(guest_clock_method(clock), "KVM's TSC offset");
		/* The guest's clock drifts by some us in the second after the last pair. */
		follow(clock, 60, i == 1, 20000);
		guest_clock_free(clock);
		vm_free(vm);
	}
}

static void test_pings(void **state)
{
	struct guest_clock *clock = guest_clock_new(NULL);

	(void)state;
	scale = (struct tsc_scale){.offset = -69000000000000, .ratio = 1};
	srand(2);
	assert_string_equal(guest_clock_method(clock), "nothing");
	pair(clock, -1e9, true);
	assert_false(guest_clock_ready(clock));
	ping(clock, -1e8);
	assert_string_equal(guest_clock_method(clock), "pings");
	follow(clock, 60, true, 60000);
	guest_clock_free(clock);
}

/* Pings cannot relate TSCs of different rates, and notice that. */
static void test_pings_of_another_rate(void **state)
{
	struct guest_clock *clock = guest_clock_new(NULL);

	(void)state;
	scale = (struct tsc_scale){
		.offset = 5, .ratio = (uint64_t)(1.01 * (1ull << 32)), .frac_bits = 32};
	srand(4);
	for (int s = 0; s < 10; s++) {
		struct clock_pair ours = {.tsc = host_tsc(s * 1e9), .mono = host_clock(s * 1e9)};

		ping(clock, s * 1e9);
		guest_clock_host_pair(clock, &ours);
		guest_clock_pair(clock, guest_tsc(s * 1e9), guest_clock(s * 1e9), READ_ERROR);
		assert_true(s < 4 || !guest_clock_ready(clock));
	}
	guest_clock_free(clock);
}

/* The guest has booted again: its clock starts at 0, its TSC is where it was. */
static void test_another_clock(void **state)
{
	struct guest_clock *clock = guest_clock_new(NULL);

	(void)state;
	scale = (struct tsc_scale){.offset = -69000000000000, .ratio = 1};
	srand(5);
	follow(clock, 10, true, 60000);
	guest_clock_restart(clock, 1);
	assert_false(guest_clock_ready(clock));
	follow(clock, 10, true, 60000);
	guest_clock_free(clock);
}

static void test_a_tsc_that_is_set(void **state)
{
	struct guest_clock *clock;
	struct vm *vm;

	(void)state;
	srand(3);
	scale = (struct tsc_scale){.offset = -69000000000000, .ratio = 1ull << 32, .frac_bits = 32};
	write_scale();
	vm = vm_find(root, "100", NULL);
	clock = guest_clock_new(vm);
	pair(clock, 0, true);
	pair(clock, 1e9, true);
	scale.offset += 1000000000000;
	write_scale();
	pair(clock, 2e9, false);
	pair(clock, 3e9, true);
	pair(clock, 4e9, true);
	check_second(clock, 3e9);
	guest_clock_free(clock);
	vm_free(vm);

	clock = guest_clock_new(NULL); /* the same, seen by pings */
	ping(clock, 0);
	pair(clock, 1e9, true);
	pair(clock, 2e9, true);
	assert_true(guest_clock_ready(clock));
	scale.offset -= 1000000000000;
	ping(clock, 2.5e9);
	assert_false(guest_clock_ready(clock));
	pair(clock, 3e9, true);
	pair(clock, 4e9, true);
	pair(clock, 5e9, true);
	check_second(clock, 4e9);
	guest_clock_free(clock);
}

/* The guest reads the wall clock of the host, or of another one, which is ahead of it. */
static void read_ptp(struct guest_clock *clock, double t, double ahead,
		     const struct ping_bounds *bounds)
{
	double later = t + 2000000;
	struct clock_pair here = {.error = READ_ERROR, .mono = host_clock(later)};
	struct guest_ptp ptp = {
		.ns = guest_clock(t + noise(READ_ERROR)),
		.host_real = host_clock(t + ahead) + wall_offset,
		.error = READ_ERROR,
	};

	ptp.mono = ptp.ns;
	here.real = here.mono + wall_offset + (int64_t)noise(READ_ERROR);
	guest_clock_ptp(clock, &ptp, &here, bounds);
}

/* Without TSCs that relate. The wall clock is set to and fro. */
static void test_ptp(void **state)
{
	struct guest_clock *clock = guest_clock_new(NULL);
	struct ping_bounds none = {};
	double error = INFINITY;

	(void)state;
	srand(6);
	read_ptp(clock, 0, 0, &none); /* our wall clock was not read before */
	assert_false(guest_clock_ready(clock));
	for (int s = 1; s < 100; s++) {
		if (s % 10 == 0)
			wall_offset += (s % 20 ? 1000 : -1000) * 1000000000ull;
		read_ptp(clock, s * 1e9, 0, &none);
		assert_true(guest_clock_ready(clock));
		assert_string_equal(guest_clock_method(clock), "KVM's PTP clock");
		/* The reading after a change is left out. */
		error = check_second(clock, s * 1e9);
		assert_true(error < (s == 1 ? 110000 : 70000));
	}
	guest_clock_restart(clock, 1);
	assert_false(guest_clock_ready(clock));
	guest_clock_free(clock);
}

/* A guest of another host: its PTP clock is not our wall clock, which pings tell. */
static void test_ptp_of_another_host(void **state)
{
	struct guest_clock *clock = guest_clock_new(NULL);
	struct ping_bounds bounds = {}, none = {};

	(void)state;
	srand(7);
	scale = (struct tsc_scale){.offset = -69000000000000, .ratio = 1};
	pair(clock, -1e9, true);
	ping(clock, -1e8);
	for (int s = 0; s < 20; s++) {
		double ahead = s < 10 ? 1e6 : 0; /* then it comes to us */

		ping(clock, s * 1e9);
		pair(clock, s * 1e9 + 50e6, true);
		read_ptp(clock, s * 1e9 + 51e6, ahead, &none);
		assert_string_equal(guest_clock_method(clock),
				    s < 10 ? "pings, which rule out KVM's PTP clock"
					   : "KVM's PTP clock");
		check_second(clock, s * 1e9 + 51e6);
	}
	guest_clock_free(clock);

	clock = guest_clock_new(NULL); /* the same by bounds of the guest's CLOCK_MONOTONIC */
	ping_bounds_init(&bounds, 100e-6);
	read_ptp(clock, -1e9, 0, &bounds);
	for (int s = 0; s < 20; s++) {
		double ahead = s < 10 ? 1e6 : 0, t = s * 1e9;

		assert_int_equal(ping_bounds_add(&bounds, host_clock(t), guest_clock(t + 2e5),
						 guest_clock(t + 3e5), host_clock(t + 4e5)),
				 0);
		read_ptp(clock, t + 51e6, ahead, &bounds);
		assert_int_equal(guest_clock_ready(clock), s >= 10);
	}
	guest_clock_free(clock);
}

/* What debugfs tells is preferred. */
static void test_ptp_with_debugfs(void **state)
{
	struct guest_clock *clock;
	struct ping_bounds none = {};
	struct vm *vm;

	(void)state;
	srand(8);
	scale = (struct tsc_scale){.offset = -69000000000000, .ratio = 1ull << 32, .frac_bits = 32};
	write_scale();
	vm = vm_find(root, "100", NULL);
	clock = guest_clock_new(vm);
	pair(clock, 0, true);
	for (int s = 1; s < 10; s++) {
		pair(clock, s * 1e9, true);
		read_ptp(clock, s * 1e9, 1e6, &none);
		assert_string_equal(guest_clock_method(clock), "KVM's TSC offset");
	}
	check_second(clock, 9e9);
	guest_clock_free(clock);
	vm_free(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets_of_kvm),
		cmocka_unit_test(test_pings),
		cmocka_unit_test(test_pings_of_another_rate),
		cmocka_unit_test(test_another_clock),
		cmocka_unit_test(test_a_tsc_that_is_set),
		cmocka_unit_test(test_ptp),
		cmocka_unit_test(test_ptp_of_another_host),
		cmocka_unit_test(test_ptp_with_debugfs),
	};

	return cmocka_run_group_tests_name("guest_clock", tests, set_up, tear_down);
}
