/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock of a sender whose wall clock is wrong, and what is known of it when it comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include "os/clock.h"
#include "pull/remote_clock.h"

#define SECOND 1000000000ull
#define AHEAD  (1000 * SECOND) /* of its CLOCK_MONOTONIC */

/* What the sender reads now. Its wall clock is two seconds behind. */
static struct wire_pair read_there(void)
{
	double sec, nsec;
	uint64_t mono = clock_monotonic();

	clock_wall_zero(&sec, &nsec);
	return (struct wire_pair){
		.clock = mono + AHEAD,
		.mono = mono + AHEAD,
		.real = (uint64_t)sec * SECOND + (uint64_t)(int64_t)nsec + mono - 2 * SECOND,
		.real_error_us = 16000000,
	};
}

static void answer_ping(struct remote_clock *c)
{
	struct wire_ping ping;
	struct wire_pong pong = {};

	remote_clock_ping(c, &ping);
	pong.seq = ping.seq;
	pong.received_mono = clock_monotonic() + AHEAD;
	pong.sent_mono = clock_monotonic() + AHEAD;
	remote_clock_pong(c, &pong);
}

static void connect_to(struct remote_clock *c, const struct wire_hello *hello)
{
	struct wire_pair pair = read_there();

	remote_clock_start(c, hello, false);
	remote_clock_pair(c, &pair, hello);
}

/* How far a time of the sender is converted into the past, s */
static double behind(const struct remote_clock *c)
{
	uint64_t now = clock_monotonic();

	return (double)(int64_t)(now - remote_clock_convert(c, now + AHEAD)) / SECOND;
}

static void same_boot(void **state)
{
	struct wire_hello hello = {.version = WIRE_VERSION, .boot_id = {1}, .epoch = 1};
	struct remote_clock c = {};
	struct wire_pair pair;

	(void)state;
	remote_clock_clear(&c);
	connect_to(&c, &hello);
	assert_true(behind(&c) > 1.9 && behind(&c) < 2.1); /* there is only the wall clock */
	answer_ping(&c);
	pair = read_there();
	remote_clock_pair(&c, &pair, &hello);
	assert_true(behind(&c) < 0.01);
	hello.epoch = 2; /* another sender on the same kernel */
	connect_to(&c, &hello);
	assert_true(behind(&c) < 0.01);
	hello.boot_id[0] = 2;
	connect_to(&c, &hello);
	assert_true(behind(&c) > 1.9);
	remote_clock_clear(&c);
}

/* A guest tells what our wall clock is; its own is wrong. */
static void ptp_of_a_guest(void **state)
{
	struct wire_hello hello = {.version = WIRE_VERSION, .boot_id = {1}, .epoch = 1};
	struct remote_clock c = {};
	struct wire_pair pair;
	struct wire_ptp ptp;

	(void)state;
	remote_clock_clear(&c);
	assert_int_equal(remote_clock_set_vm(&c, NULL), 0);
	for (int i = 0; i < 2; i++) {
		hello.boot_id[0]++;
		connect_to(&c, &hello);
		assert_true(behind(&c) > 1.9);
		pair = read_there();
		ptp = (struct wire_ptp){.clock = pair.clock,
					.mono = pair.mono,
					.host_real = pair.real + 2 * SECOND,
					.error_ns = 1000};
		remote_clock_ptp(&c, &ptp);
		assert_string_equal(c.method, "KVM's PTP clock");
		assert_true(c.error < 1e6);
		assert_true(behind(&c) < 0.01);
		remote_clock_pair(&c, &pair, &hello);
		assert_true(behind(&c) < 0.01);
	}
	/* Who is not our guest reads the clock of another host. */
	remote_clock_clear(&c);
	connect_to(&c, &hello);
	remote_clock_ptp(&c, &ptp);
	assert_true(behind(&c) > 1.9);
	remote_clock_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_boot),
		cmocka_unit_test(ptp_of_a_guest),
	};

	return cmocka_run_group_tests_name("remote_clock", tests, NULL, NULL);
}
