/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "clocks/clock_axis.h"
#include "clocks/clock_pair.h"
#include "clocks/kvmclock.h"
#include "error.h"
#include "source.h"

static const struct source_clock live = {.id = CLOCK_MONOTONIC, .is_live = true};

static struct clock_axis *axis_of(const struct axis_options *options,
				  const struct source_clock *clock)
{
	struct error err = {0};
	struct clock_axis *axis = clock_axis_new(options, clock, &err);

	assert_string_equal(err.text, "");
	assert_non_null(axis);
	return axis;
}

static const char *text_of(int64_t offset, uint64_t ns)
{
	struct axis_options options = {.offset = offset};
	struct clock_axis *axis = axis_of(&options, &live);
	static char text[32];
	size_t n;

	n = clock_axis_text(axis, ns, text, sizeof(text));
	assert_int_equal(n, strlen(text));
	assert_true(clock_axis_time(axis, ns) == (int64_t)(ns + (uint64_t)offset));
	assert_true(clock_axis_error(axis) == 0);
	assert_true(clock_axis_ready(axis));
	clock_axis_free(axis);
	return text;
}

static void test_offsets(void **state)
{
	(void)state;
	assert_string_equal(text_of(0, 12345678901499), "12345.678901");
	assert_string_equal(text_of(1000, 12345678901499), "12345.678902");
	assert_string_equal(text_of(1, 12345678901499), "12345.678902"); /* rounded, as without */
	assert_string_equal(text_of(-1000, 12345678901499), "12345.678900");
	assert_string_equal(text_of(-12345678901499, 12345678901499), "0.000000");
	assert_string_equal(text_of(-12345678902499, 12345678901499), "-0.000001");
	assert_string_equal(text_of(-13345678901499, 12345678901499), "-1000.000000");
	assert_string_equal(text_of(-2, 1), "0.000000");
	assert_string_equal(text_of(INT64_MIN, 0), "-9223372036.854776");
	assert_string_equal(text_of(INT64_MAX, 1), "-9223372036.854776"); /* wraps */
}

static void test_live_tsc_is_between_readings(void **state)
{
	struct axis_options options = {.tsc = 1};
	struct clock_axis *axis;
	int64_t last = 0;
	char text[32];

	(void)state;
	if (clock_tsc_check(NULL))
		skip();
	axis = axis_of(&options, &live);
	assert_true(clock_axis_is_cycles(axis));
	for (int i = 0; i < 5000; i++) {
		struct timespec ts;
		uint64_t before = clock_tsc(), after;
		int64_t tsc, slack;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		after = clock_tsc();
		tsc = clock_axis_time(axis, ts.tv_sec * 1000000000ull + ts.tv_nsec);
		slack = clock_axis_error(axis) * 10; /* cycles: no TSC is faster than 10 GHz */
		assert_true(tsc >= (int64_t)before - slack && tsc <= (int64_t)after + slack);
		assert_true(tsc >= last);
		last = tsc;
	}
	assert_true(clock_axis_error(axis) > 0 && clock_axis_error(axis) < 100000);
	clock_axis_text(axis, 1000, text, sizeof(text));
	assert_null(strchr(text, '.'));
	clock_axis_free(axis);
}

/* As perf writes it: time = zero + (tsc * mult >> shift). */
static void test_recorded_tsc(void **state)
{
	const struct source_clock clock = {.id = SOURCE_CLOCK_LOCAL,
					   .has_conversion = true,
					   .shift = 31,
					   .mult = 827206239,
					   .zero = 18446744072974984350ull};
	struct axis_options options = {.tsc = 1, .offset = -7};
	struct clock_axis *axis = axis_of(&options, &clock);

	(void)state;
	for (uint64_t tsc = 12345678901; tsc < 1ull << 60; tsc = tsc / 5 * 7) {
		uint64_t ns =
			clock.zero + (uint64_t)((unsigned __int128)tsc * clock.mult >> clock.shift);
		int64_t off = clock_axis_time(axis, ns) + 7 - (int64_t)tsc;

		assert_true(off >= -3 && off <= 3); /* a ns is 2.6 cycles */
	}
	assert_true(clock_axis_error(axis) == 1);
	clock_axis_free(axis);
}

static void check_refused(const struct axis_options *options, const struct source_clock *clock,
			  const char *message)
{
	struct error err = {0};

	assert_null(clock_axis_new(options, clock, &err));
	if (!strstr(err.text, message))
		fail_msg("%s", err.text);
}

static void test_what_recordings_do_not_tell(void **state)
{
	static const struct axis_options tsc = {.tsc = 1}, mono = {.monotonic = 1},
					 vm = {.vm = "web1"};
	static const struct source_clock local = {.id = SOURCE_CLOCK_LOCAL},
					 tai = {.id = CLOCK_TAI},
					 raw = {.id = CLOCK_MONOTONIC_RAW, .has_conversion = false},
					 mixed = {.id = SOURCE_CLOCK_MIXED}, odd = {.id = 99},
					 fine = {.id = CLOCK_MONOTONIC};

	(void)state;
	check_refused(&tsc, &local, "--tsc: the recording does not tell how the TSC relates");
	check_refused(&tsc, &tai, "--tsc: the times are CLOCK_TAI, and nothing tells how the TSC");
	check_refused(&mono, &local,
		      "--monotonic: the times are those of the kernel's local clock");
	check_refused(&mono, &raw,
		      "--monotonic: the times are CLOCK_MONOTONIC_RAW, and nothing tells");
	check_refused(&mono, &mixed, "--monotonic: the times are of several clocks");
	check_refused(&mono, &odd, "--monotonic: the times are of an unknown clock");
	check_refused(&vm, &fine, "--kvmclock: a recording does not contain");
	check_refused(&vm, &live, "--kvmclock: no virtual machine 'web1'");
	clock_axis_free(axis_of(&mono, &fine));
}

static void test_kvmclock(void **state)
{
	/* 2.6 GHz: halved, then 2^32 / 1.3 ns per cycle */
	const struct kvmclock clock = {.tsc_timestamp = 1000000,
				       .system_time = 5000000000,
				       .mul = 3303820997u,
				       .shift = -1};
	struct kvmclock doubled = clock;

	(void)state;
	assert_int_equal(kvmclock_time(&clock, 1000000), 5000000000);
	assert_int_equal(kvmclock_time(&clock, 2601000000), 6000000000);
	assert_int_equal(kvmclock_time(&clock, 1000000 - 2600), 5000000000 - 1000); /* before it */
	doubled.shift = 1;
	assert_int_equal(kvmclock_time(&doubled, 1000000 + 650000000), 6000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_live_tsc_is_between_readings),
		cmocka_unit_test(test_recorded_tsc),
		cmocka_unit_test(test_what_recordings_do_not_tell),
		cmocka_unit_test(test_kvmclock),
	};

	return cmocka_run_group_tests_name("clock_axis", tests, NULL, NULL);
}
