/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "event.h"
#include "sql/rows.h"

enum { A = EVENT_FIRST, B, OTHER };

static void add(struct rows *r, uint16_t class, double time)
{
	uint8_t raw[128] = {0};
	struct event ev = {.class = class, .time = time, .raw = raw, .raw_size = sizeof(raw)};

	rows_add(r, &ev, 1);
}

static void tables_have_their_classes_only(void **state)
{
	struct rows *r = rows_new(1 << 20);
	struct rows_stats stats;

	(void)state;
	assert_int_equal(rows_add_table(r, EVENT_LOST), -EINVAL);
	assert_int_equal(rows_add_table(r, EVENT_CLASSES), -EINVAL);
	assert_int_equal(rows_add_table(r, B), 0);
	assert_int_equal(rows_add_table(r, A), 1);
	assert_int_equal(rows_add_table(r, A), -EINVAL);
	add(r, A, 1);
	add(r, OTHER, 2);
	add(r, EVENT_FILTERED, 2);
	add(r, A, 3);
	add(r, B, 4);
	assert_int_equal(rows_count(r, 0), 1);
	assert_int_equal(rows_count(r, 1), 2);
	assert_true(rows_of(r, 1)[1]->time == 3);
	rows_read_stats(r, &stats);
	assert_int_equal(stats.added, 3);
	assert_int_equal(stats.dropped, 0);
	assert_true(stats.dropped_until == -INFINITY);
	rows_clear(r);
	assert_int_equal(rows_count(r, 0) + rows_count(r, 1), 0);
	assert_int_equal(rows_bytes(r), 0);
	rows_free(r);
}

static void late_rows_go_to_their_place(void **state)
{
	static const double times[] = {5, 7, 7, 6, 1, 7, 8, 0};
	static const double sorted[] = {0, 1, 5, 6, 7, 7, 7, 8};
	struct rows *r = rows_new(1 << 20);

	(void)state;
	rows_add_table(r, A);
	for (int i = 0; i < 8; i++)
		add(r, A, times[i]);
	for (int i = 0; i < 8; i++)
		assert_true(rows_of(r, 0)[i]->time == sorted[i]);
	assert_int_equal(rows_before(r, 0, -1), 0);
	assert_int_equal(rows_before(r, 0, 7), 4);
	assert_int_equal(rows_before(r, 0, 7.5), 7);
	assert_int_equal(rows_before(r, 0, 9), 8);
	rows_free(r);
}

static void classes_share_a_table(void **state)
{
	struct rows *r = rows_new(1 << 20);

	(void)state;
	assert_int_equal(rows_share_table(r, A, 0), -EINVAL);
	assert_int_equal(rows_add_table(r, B), 0);
	assert_int_equal(rows_share_table(r, A, 0), 0);
	assert_int_equal(rows_share_table(r, A, 0), -EINVAL);
	assert_int_equal(rows_share_table(r, EVENT_LOST, 0), -EINVAL);
	add(r, A, 2);
	add(r, B, 3);
	add(r, OTHER, 3);
	add(r, B, 1);
	assert_int_equal(rows_count(r, 0), 3);
	assert_int_equal(rows_of(r, 0)[0]->class, B);
	assert_int_equal(rows_of(r, 0)[1]->class, A);
	rows_free(r);
}

static void the_oldest_of_all_tables_are_dropped(void **state)
{
	struct rows *r = rows_new(1 << 20);
	struct rows_stats stats;
	int n = 20000; /* of about 192 bytes */

	(void)state;
	rows_add_table(r, A);
	rows_add_table(r, B);
	for (int i = 0; i < n; i++)
		add(r, i % 3 ? A : B, i);
	rows_read_stats(r, &stats);
	assert_int_equal(stats.added, n);
	assert_true(stats.dropped > 0);
	assert_int_equal(rows_count(r, 0) + rows_count(r, 1) + stats.dropped, n);
	assert_true(rows_bytes(r) <= 1 << 20);
	/* None is older than those that were dropped, and the youngest are all there. */
	for (uint32_t t = 0; t < 2; t++) {
		uint32_t count = rows_count(r, t);

		assert_true(count > 100);
		assert_true(rows_of(r, t)[0]->time > stats.dropped_until);
		for (uint32_t i = 1; i < count; i++)
			assert_true(rows_of(r, t)[i]->time - rows_of(r, t)[i - 1]->time <= 3);
		assert_true(rows_of(r, t)[count - 1]->time >= n - 3);
	}
	rows_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_have_their_classes_only),
		cmocka_unit_test(late_rows_go_to_their_place),
		cmocka_unit_test(classes_share_a_table),
		cmocka_unit_test(the_oldest_of_all_tables_are_dropped),
	};

	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
