/* SPDX-License-Identifier: GPL-2.0-only */
/* native/objects.c: an object that was put can be taken once, in any order, up to the limit. */
#include "native/objects.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void put_and_take(void **state)
{
	struct objects *o = objects_new(100);
	const struct object *taken;

	(void)state;
	assert_int_equal(objects_put(o, 0, 0xffff888100000040, 64, 5, 7, 3, 1), 0);
	assert_int_equal(objects_count(o), 1);
	assert_null(objects_take(o, 0, 0xffff888100000080));
	taken = objects_take(o, 0, 0xffff888100000040);
	assert_non_null(taken);
	assert_int_equal(taken->size, 64);
	assert_int_equal(taken->tid, 7);
	assert_int_equal(taken->stack, 3);
	assert_int_equal(taken->kind, 1);
	assert_true(taken->time == 5);
	assert_int_equal(objects_count(o), 0);
	assert_null(objects_take(o, 0, 0xffff888100000040));
	objects_free(o);
}

static void the_newer_object_stays(void **state)
{
	struct objects *o = objects_new(100);

	(void)state;
	assert_int_equal(objects_put(o, 0, 64, 1, 1, 1, 1, 1), 0);
	assert_int_equal(objects_put(o, 0, 64, 2, 2, 1, 1, 1), 1);
	assert_int_equal(objects_count(o), 1);
	assert_int_equal(objects_take(o, 0, 64)->size, 2);
	objects_free(o);
}

static void spaces_are_separate(void **state)
{
	struct objects *o = objects_new(100);

	(void)state;
	objects_put(o, 10, 4096, 1, 0, 0, 0, 0);
	objects_put(o, 11, 4096, 2, 0, 0, 0, 0);
	assert_int_equal(objects_count(o), 2);
	assert_int_equal(objects_take(o, 11, 4096)->size, 2);
	assert_int_equal(objects_take(o, 10, 4096)->size, 1);
	objects_free(o);
}

static void null_is_not_an_object(void **state)
{
	struct objects *o = objects_new(100);

	(void)state;
	assert_int_equal(objects_put(o, 0, 0, 1, 0, 0, 0, 0), -EINVAL);
	assert_null(objects_take(o, 0, 0));
	assert_int_equal(objects_count(o), 0);
	objects_free(o);
}

static void the_limit_holds(void **state)
{
	struct objects *o = objects_new(3);
	struct objects_stats stats;

	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(objects_put(o, 0, i, 0, 0, 0, 0, 0), 0);
	assert_int_equal(objects_put(o, 0, 4, 0, 0, 0, 0, 0), -ENOSPC);
	assert_int_equal(objects_put(o, 0, 2, 0, 0, 0, 0, 0), 1);
	assert_non_null(objects_take(o, 0, 1));
	assert_int_equal(objects_put(o, 0, 4, 0, 0, 0, 0, 0), 0);
	objects_put_later(o, 0, 5, 0, 0, 0, 0, 0);
	objects_put_later(o, 0, 6, 0, 0, 0, 0, 0);
	objects_put_later(o, 0, 4, 0, 0, 0, 0, 0);
	objects_drop_later(o, 0, 7);
	objects_drop_later(o, 0, 0);
	objects_read_stats(o, &stats);
	assert_int_equal(stats.refused, 2);
	assert_int_equal(stats.replaced, 1);
	assert_int_equal(objects_count(o), 3);
	objects_free(o);
}

/* Compared with an array of flags, with few different addresses, so that removals hit long runs. */
static void agrees_with_an_array(void **state)
{
	enum { ADDRESSES = 3000, STEPS = 400000 };
	static uint32_t there[ADDRESSES]; /* the step that put it, 0: none */
	struct objects *o = objects_new(ADDRESSES);
	uint32_t n = 0, at = 0, seen = 0, seed = 1;
	const struct object *object;
	struct objects_stats stats;
	uint64_t replaced = 0;

	(void)state;
	memset(there, 0, sizeof(there));
	for (uint32_t step = 1; step <= STEPS; step++) {
		uint32_t i;

		seed = seed * 1103515245 + 12345;
		i = (seed >> 8) % ADDRESSES;
		if (step % 5000 < 2500) { /* the same, deferred */
			if (seed >> 31)
				objects_put_later(o, i % 3, (i + 1) * 64, step, 0, 0, 0, 0);
			else
				objects_drop_later(o, i % 3, (i + 1) * 64);
			replaced += seed >> 31 && there[i];
			n += (seed >> 31) - (there[i] != 0);
			there[i] = seed >> 31 ? step : 0;
			if (step % 50 == 0)
				assert_int_equal(objects_count(o), n);
			continue;
		}
		if (seed >> 31) {
			int ret = objects_put(o, i % 3, (i + 1) * 64, step, 0, 0, 0, 0);

			assert_int_equal(ret, there[i] != 0);
			n += !there[i];
			there[i] = step;
		} else {
			object = objects_take(o, i % 3, (i + 1) * 64);
			assert_int_equal(object ? object->size : 0, there[i]);
			n -= there[i] != 0;
			there[i] = 0;
		}
		assert_int_equal(objects_count(o), n);
	}
	while ((object = objects_next(o, &at))) {
		assert_int_equal(object->size, there[object->address / 64 - 1]);
		seen++;
	}
	assert_int_equal(seen, n);
	objects_read_stats(o, &stats);
	assert_int_equal(stats.replaced, replaced);
	assert_int_equal(stats.refused, 0);
	objects_free(o);
}

static void swap_returns_what_it_replaces(void **state)
{
	struct objects *o = objects_new(1);
	struct objects_stats stats;
	const struct object *old;

	(void)state;
	assert_null(objects_swap(o, 1, 64, 5, 100, 7, 8, 9));
	old = objects_swap(o, 1, 64, 6, 200, 0, 0, 2);
	assert_true(old && old->size == 5 && old->time == 100 && old->tid == 7 && old->kind == 9);
	assert_null(objects_swap(o, 1, 0, 1, 1, 1, 1, 1));  /* no address */
	assert_null(objects_swap(o, 1, 65, 1, 1, 1, 1, 1)); /* no room */
	assert_int_equal(objects_count(o), 1);
	objects_read_stats(o, &stats);
	assert_true(stats.replaced == 1 && stats.refused == 1);
	old = objects_take(o, 1, 64);
	assert_true(old && old->size == 6 && old->time == 200 && old->kind == 2);
	objects_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_and_take),
		cmocka_unit_test(the_newer_object_stays),
		cmocka_unit_test(spaces_are_separate),
		cmocka_unit_test(null_is_not_an_object),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(agrees_with_an_array),
		cmocka_unit_test(swap_returns_what_it_replaces),
	};

	return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
