/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/recording/sorter.c: time order, stability, bounds, any disorder in the input. */
#include "recording/sorter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RINGS = 1500, MAX_OUT = 100 };

/* The output so far. A slot's rec is the number it was added with. */
struct output {
	uint64_t time;
	uintptr_t number;
	size_t nr;
};

static void take_all(struct sorter *s, struct output *o, int max, uint64_t until, bool stable)
{
	struct slot out[MAX_OUT];
	int n;

	while ((n = sorter_take(s, out, max, until)) > 0) {
		for (int i = 0; i < n; i++) {
			uintptr_t number = (uintptr_t)out[i].rec;

			assert_true(out[i].time <= until);
			assert_true(out[i].time >= o->time);
			if (stable && out[i].time == o->time)
				assert_true(number > o->number);
			assert_int_equal(out[i].ring, number % 7);
			o->time = out[i].time;
			o->number = number;
		}
		o->nr += n;
	}
	assert_true(sorter_oldest(s) > until || sorter_oldest(s) == UINT64_MAX);
}

/* Rings with their own clocks are dumped in random pieces, with many releases in between. */
static void try_rings(int nr_rings, int step, bool stable)
{
	static uint64_t clock[RINGS];
	struct sorter *s = sorter_new();
	struct output o = {};
	uint64_t until = 0;
	size_t added = 0;

	assert_non_null(s);
	for (int i = 0; i < nr_rings; i++)
		clock[i] = 1 + rand() % 10;
	for (int round = 0; round < 60; round++) {
		for (int i = rand() % 200; i > 0; i--) {
			int ring = rand() % nr_rings;

			clock[ring] += rand() % step;
			if (clock[ring] <= until)
				clock[ring] = until + 1;
			added++;
			assert_int_equal(sorter_add(s, clock[ring], (void *)added, added % 7), 0);
		}
		if (rand() % 3)
			continue;
		until += rand() % 50;
		take_all(s, &o, 1 + rand() % MAX_OUT, until, stable);
	}
	take_all(s, &o, MAX_OUT, UINT64_MAX, stable);
	assert_int_equal(o.nr, added);
	sorter_free(s);
}

static void test_rings(void **state)
{
	(void)state;
	srand(1);
	for (int i = 0; i < 1000; i++)
		try_rings(1 + i % 9, 1 + i % 5, true);
	for (int i = 0; i < 20; i++)
		try_rings(RINGS, 1 + i % 5, false);
}

static void test_backwards(void **state)
{
	enum { N = 200000 };
	struct sorter *s = sorter_new();
	struct output o = {};

	(void)state;
	for (uintptr_t i = 1; i <= N; i++)
		assert_int_equal(sorter_add(s, N - i, (void *)i, i % 7), 0);
	assert_int_equal(sorter_oldest(s), 0);
	take_all(s, &o, MAX_OUT, UINT64_MAX, true);
	assert_int_equal(o.nr, N);
	assert_int_equal(o.time, N - 1);
	sorter_free(s);
}

static void test_random(void **state)
{
	enum { N = 100000 };
	struct sorter *s = sorter_new();
	struct output o = {};

	(void)state;
	srand(2);
	for (uintptr_t i = 1; i <= N; i++)
		assert_int_equal(sorter_add(s, rand(), (void *)i, i % 7), 0);
	take_all(s, &o, MAX_OUT, UINT64_MAX, false);
	assert_int_equal(o.nr, N);
	sorter_free(s);
}

/* The ends of the number range, where bounds could wrap. */
static void test_extremes(void **state)
{
	static const uint64_t times[] = {0, UINT64_MAX, 0, UINT64_MAX, 1, 0, UINT64_MAX - 1, 0, 0};
	struct sorter *s = sorter_new();
	struct output o = {};

	(void)state;
	assert_int_equal(sorter_oldest(s), UINT64_MAX);
	for (uintptr_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		assert_int_equal(sorter_add(s, times[i], (void *)(i + 1), (i + 1) % 7), 0);
	take_all(s, &o, 2, 0, true);
	assert_int_equal(o.nr, 5);
	take_all(s, &o, MAX_OUT, UINT64_MAX - 1, true);
	assert_int_equal(o.nr, 7);
	take_all(s, &o, MAX_OUT, UINT64_MAX, true);
	assert_int_equal(o.nr, 9);
	sorter_free(s);
	sorter_free(NULL);
}

/* A time span that is longer as a floating-point number than it is. */
static void test_longest_spans(void **state)
{
	(void)state;
	for (uint64_t first = 0; first < 1 << 16; first += 500) {
		const uint64_t times[] = {first, UINT64_MAX, first, first + 1, UINT64_MAX - 1};
		struct sorter *s = sorter_new();
		struct output o = {};

		for (uintptr_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
			assert_int_equal(sorter_add(s, times[i], (void *)(i + 1), (i + 1) % 7), 0);
		take_all(s, &o, MAX_OUT, UINT64_MAX, true);
		assert_int_equal(o.nr, 5);
		sorter_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rings),	      cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_random),	      cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_longest_spans),
	};

	return cmocka_run_group_tests_name("sorter", tests, NULL, NULL);
}
