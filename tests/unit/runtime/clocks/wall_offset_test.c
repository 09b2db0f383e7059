/* SPDX-License-Identifier: GPL-2.0-only */
/* Wall times around moments at which the wall clock is set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "clocks/clock_pair.h"
#include "clocks/wall_offset.h"

#define SECOND 1000000000ull

enum { READ_ERROR = 40 };

static uint64_t offset;

static void set_wall(int64_t seconds)
{
	offset = 1700000000 * SECOND + 123456789 + seconds * SECOND;
}

static void add(struct wall_offset *wall, uint64_t mono)
{
	struct clock_pair pair = {.mono = mono, .error = READ_ERROR};

	pair.real = mono + offset + rand() % (2 * READ_ERROR + 1) - READ_ERROR;
	wall_offset_add(wall, &pair);
}

static bool converts(const struct wall_offset *wall, uint64_t mono, double limit)
{
	uint64_t is;
	double error;

	if (!wall_offset_to_mono(wall, mono + offset, &is, &error))
		return false;
	assert_true(fabs((double)(int64_t)(is - mono)) <= error);
	assert_true(error <= limit);
	return true;
}

static void test_steady(void **state)
{
	struct wall_offset wall = {};

	(void)state;
	srand(1);
	set_wall(0);
	assert_false(converts(&wall, 5 * SECOND, 0));
	add(&wall, 5 * SECOND);
	assert_false(converts(&wall, 4 * SECOND, 0));
	assert_false(converts(&wall, 6 * SECOND, 0));
	add(&wall, 6 * SECOND);
	assert_true(converts(&wall, 5 * SECOND + 1, READ_ERROR + 1));
	assert_false(converts(&wall, 6 * SECOND + 1000, 0));
	/* Many readings together are more exact than one. */
	for (int s = 7; s < 200; s++)
		add(&wall, s * SECOND);
	assert_true(converts(&wall, 5 * SECOND + 1, 5));
	assert_true(converts(&wall, 199 * SECOND, 5));
}

static void test_set_forward(void **state)
{
	struct wall_offset wall = {};

	(void)state;
	srand(2);
	set_wall(0);
	add(&wall, 1 * SECOND);
	add(&wall, 2 * SECOND);
	set_wall(100);
	/* Nobody has noticed yet. */
	assert_false(converts(&wall, 2 * SECOND + 500, 0));
	add(&wall, 3 * SECOND);
	/* It was set at some time between the readings. */
	assert_false(converts(&wall, 2 * SECOND + 500000, 0));
	add(&wall, 4 * SECOND);
	assert_true(converts(&wall, 3 * SECOND + 500000, READ_ERROR + 1));
	set_wall(0);
	assert_true(converts(&wall, 1 * SECOND + 500000, READ_ERROR + 1));
	assert_false(converts(&wall, 2 * SECOND + 500000, 0));
}

/* A wall time that happens twice is not converted. */
static void test_set_back(void **state)
{
	struct wall_offset wall = {};

	(void)state;
	srand(3);
	set_wall(0);
	for (int s = 1; s < 10; s++)
		add(&wall, s * SECOND);
	set_wall(-3);
	for (int s = 10; s < 20; s++)
		add(&wall, s * SECOND);
	assert_false(converts(&wall, 11 * SECOND, 0)); /* also 8 s, as it was then */
	assert_true(converts(&wall, 13 * SECOND, READ_ERROR + 1));
	set_wall(0);
	assert_false(converts(&wall, 8 * SECOND, 0));
	assert_true(converts(&wall, 6 * SECOND, READ_ERROR + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_set_forward),
		cmocka_unit_test(test_set_back),
	};

	return cmocka_run_group_tests_name("wall_offset", tests, NULL, NULL);
}
