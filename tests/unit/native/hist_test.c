/* SPDX-License-Identifier: GPL-2.0-only */
/* native/hist.c compared with sorting, at the ends of its range, and its other counts. */
#include "native/hist.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VALUES = 20000 };

static double uniform(void)
{
	return (random() + 1.0) / ((double)RAND_MAX + 2);
}

static int64_t draw_uniform(void)
{
	return (int64_t)(uniform() * 1e6);
}

static int64_t draw_exponential(void)
{
	return (int64_t)(-log(uniform()) * 50000);
}

static int64_t draw_pareto(void)
{
	return (int64_t)(1000 / pow(uniform(), 2));
}

static int64_t draw_bimodal(void)
{
	return (int64_t)(random() % 10 ? 2000 + uniform() * 100 : 5e9 + uniform() * 1e8);
}

static int64_t draw_small(void)
{
	return random() % 100;
}

static int64_t draw_any_octave(void)
{
	return (int64_t)(((uint64_t)random() << 32 | (uint64_t)random()) >> (1 + random() % 63));
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void check_quantiles(int64_t (*draw)(void))
{
	static int64_t v[VALUES];
	struct hist *h = hist_new(-1);
	struct hist_stats s;
	uint64_t sum = 0;

	for (int i = 0; i < VALUES; i++) {
		v[i] = draw();
		sum = sum + (uint64_t)v[i] < sum ? UINT64_MAX : sum + (uint64_t)v[i];
		assert_int_equal(hist_add(h, v[i]), 0);
	}
	qsort(v, VALUES, sizeof(*v), compare);
	for (int permille = 0; permille <= 1000; permille++) {
		double q = permille / 1000.0;
		int rank = (int)ceil(q * VALUES);
		int64_t exact = v[rank > 1 ? rank - 1 : 0];
		int64_t got = (int64_t)hist_quantile(h, q);

		if (fabs((double)(got - exact)) > (double)exact / 100)
			fail_msg("q %.3f: %ld, sorted: %ld", q, (long)got, (long)exact);
	}
	hist_read(h, &s);
	assert_int_equal(s.count, VALUES);
	assert_int_equal(s.min, v[0]);
	assert_int_equal(s.max, v[VALUES - 1]);
	if (sum != UINT64_MAX)
		assert_int_equal(s.sum, sum);
	assert_int_equal(s.over, 0);
	hist_free(h);
}

/* Two passes in the widest type, which has 64 bits for the mean and the distances. */
static void test_variance(void **state)
{
	(void)state;
	int64_t (*const draws[])(void) = {draw_uniform, draw_exponential, draw_pareto, draw_bimodal,
					  draw_small};
	static int64_t v[VALUES];

	for (size_t d = 0; d < sizeof(draws) / sizeof(*draws); d++) {
		struct hist *h = hist_new(-1);
		long double sum = 0, squares = 0;

		assert_true(isnan(hist_variance(h)));
		for (int i = 0; i < VALUES; i++) {
			v[i] = draws[d]();
			sum += v[i];
			hist_add(h, v[i]);
		}
		for (int i = 0; i < VALUES; i++)
			squares += (v[i] - sum / VALUES) * (v[i] - sum / VALUES);
		assert_true(fabsl(hist_variance(h) / (squares / VALUES) - 1) < 1e-12L);
		hist_free(h);
	}
}

/* Far from 0 and close to each other: doubles would lose the difference. */
static void test_small_variance(void **state)
{
	(void)state;
	struct hist *h = hist_new(-1);

	for (int i = 0; i < 1000; i++)
		hist_add(h, 4000000000000 + i % 2);
	assert_true(hist_variance(h) == 0.25);
	hist_clear(h);
	for (int i = 0; i < 5; i++)
		hist_add(h, INT64_MAX);
	assert_true(isnan(hist_variance(h))); /* the sum has stopped */
	hist_free(h);
}

static void test_quantiles(void **state)
{
	(void)state;
	srandom(1);
	check_quantiles(draw_uniform);
	check_quantiles(draw_exponential);
	check_quantiles(draw_pareto);
	check_quantiles(draw_bimodal);
	check_quantiles(draw_small);
	check_quantiles(draw_any_octave);
}

static void test_empty(void **state)
{
	struct hist *h = hist_new(0);
	struct hist_stats s;

	(void)state;
	hist_read(h, &s);
	assert_int_equal(s.count + s.sum + s.min + s.max + s.over + s.negative, 0);
	assert_int_equal(hist_quantile(h, 0.5), 0);
	hist_free(h);
	hist_free(NULL);
}

static void test_range_ends(void **state)
{
	struct hist *h = hist_new(-1);
	struct hist_stats s;

	(void)state;
	hist_add(h, INT64_MIN);
	hist_add(h, -1);
	hist_add(h, 0);
	hist_add(h, INT64_MAX);
	hist_read(h, &s);
	assert_int_equal(s.negative, 2);
	assert_int_equal(s.min, 0);
	assert_int_equal(s.max, INT64_MAX);
	assert_int_equal(hist_quantile(h, 0.75), 0);
	assert_int_equal(hist_quantile(h, 1), INT64_MAX);
	hist_add(h, INT64_MAX);
	hist_add(h, INT64_MAX);
	hist_read(h, &s);
	assert_true(s.sum == UINT64_MAX);
	hist_free(h);
}

static void test_unsigned_values(void **state)
{
	struct hist_set *s = hist_set_new(1, 8);
	struct hist_stats stats;
	uint64_t rows[HIST_LOG2_ROWS];
	struct hist *h;

	(void)state;
	assert_int_equal(hist_set_add_unsigned(s, 1, 1), -EINVAL);
	assert_int_equal(hist_set_add_unsigned(s, 0, 1ULL << 63), 0);
	h = hist_set_get(s, 0);
	assert_int_equal(hist_add(h, 6), 0);
	assert_true(hist_variance(h) == 0x1p124 - 0x1p62 * 6 + 9);
	assert_int_equal(hist_add_unsigned(h, UINT64_MAX), 0);
	hist_read(h, &stats);
	assert_true(stats.min == 6 && stats.max == UINT64_MAX && stats.over == 2 &&
		    !stats.negative);
	assert_true(hist_quantile(h, 1) == UINT64_MAX);
	assert_true(hist_quantile(h, 0.6) >= 1ULL << 63);
	assert_true(hist_quantile(h, 0.6) < (1ULL << 63) + (1ULL << 57));
	hist_log2(h, rows);
	assert_int_equal(rows[2 + 63], 2);
	hist_set_free(s);
}

/* One value is every quantile, whatever the width of its bucket. */
static void test_single_value(void **state)
{
	struct hist *h = hist_new(-1);

	(void)state;
	hist_add(h, 123456789);
	assert_int_equal(hist_quantile(h, 0), 123456789);
	assert_int_equal(hist_quantile(h, 0.5), 123456789);
	assert_int_equal(hist_quantile(h, 0.99), 123456789);
	hist_free(h);
}

static void test_threshold_is_strict(void **state)
{
	struct hist *h = hist_new(1000);
	struct hist_stats s;

	(void)state;
	hist_add(h, 999);
	hist_add(h, 1000);
	hist_add(h, 1001);
	hist_read(h, &s);
	assert_int_equal(s.over, 1);
	hist_clear(h);
	hist_read(h, &s);
	assert_int_equal(s.over, 0);
	hist_add(h, 1001);
	hist_read(h, &s);
	assert_int_equal(s.over, 1);
	hist_free(h);
}

static void test_clear(void **state)
{
	struct hist *h = hist_new(-1);
	struct hist_stats s;
	uint64_t rows[HIST_LOG2_ROWS], total = 0;

	(void)state;
	hist_add(h, 5);
	hist_add(h, 1 << 20);
	hist_clear(h);
	hist_read(h, &s);
	assert_int_equal(s.count + s.sum + s.min + s.max, 0);
	hist_add(h, 7);
	hist_log2(h, rows);
	for (int i = 0; i < HIST_LOG2_ROWS; i++)
		total += rows[i];
	assert_int_equal(total, 1);
	assert_int_equal(hist_quantile(h, 0.5), 7);
	hist_free(h);
}

static void test_merge(void **state)
{
	struct hist *a = hist_new(100), *b = hist_new(100), *both = hist_new(100);
	struct hist_stats merged, direct;

	(void)state;
	srandom(2);
	for (int i = 0; i < 1000; i++) {
		int64_t v = draw_pareto() - 1500;

		hist_add(i % 3 ? a : b, v);
		hist_add(both, v);
	}
	assert_int_equal(hist_merge(a, b), 0);
	hist_read(a, &merged);
	hist_read(both, &direct);
	assert_memory_equal(&merged, &direct, sizeof(merged));
	for (int percent = 0; percent <= 100; percent++)
		assert_int_equal(hist_quantile(a, percent / 100.0),
				 hist_quantile(both, percent / 100.0));
	hist_free(a);
	hist_free(b);
	hist_free(both);
}

static void test_log2(void **state)
{
	static const int64_t values[] = {-7, -1, 0, 1, 2, 3, 4, 127, 128, 255, 256, INT64_MAX};
	static const struct {
		int row;
		uint64_t count;
	} expected[] = {{0, 2}, {1, 1}, {2, 1}, {3, 2}, {4, 1}, {8, 1}, {9, 2}, {10, 1}, {64, 1}};
	struct hist *h = hist_new(-1);
	uint64_t rows[HIST_LOG2_ROWS];

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		hist_add(h, values[i]);
	hist_log2(h, rows);
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		assert_int_equal(rows[expected[i].row], expected[i].count);
		rows[expected[i].row] = 0;
	}
	for (int i = 0; i < HIST_LOG2_ROWS; i++)
		assert_int_equal(rows[i], 0);
	hist_free(h);
}

static void test_set(void **state)
{
	struct hist_set *s = hist_set_new(3, 8);
	struct hist_stats stats;

	(void)state;
	assert_null(hist_set_get(s, 2));
	assert_int_equal(hist_set_add(s, 2, 7), 0);
	assert_int_equal(hist_set_add(s, 2, 9), 0);
	assert_int_equal(hist_set_add(s, 0, 1), 0);
	assert_int_equal(hist_set_add(s, 3, 1), -EINVAL);
	assert_null(hist_set_get(s, 3));
	assert_null(hist_set_get(s, 1));
	hist_read(hist_set_get(s, 2), &stats);
	assert_int_equal(stats.count, 2);
	assert_int_equal(stats.max, 9);
	hist_set_clear(s);
	hist_read(hist_set_get(s, 2), &stats);
	assert_int_equal(stats.count, 0);
	{
		struct {
			double ns;
			uint32_t kind;
		} column[] = {{3, 0}, {8.9, 2}, {9, 2}, {10, 2}};

		assert_int_equal(hist_set_add_column(s, &column[0].kind, &column[0].ns,
						     sizeof(column[0]), 4),
				 0);
		hist_read(hist_set_get(s, 2), &stats);
		assert_int_equal(stats.count, 3);
		assert_int_equal(stats.sum, 27);
		assert_int_equal(stats.over, 2);
		column[1].kind = 3;
		assert_int_equal(hist_set_add_column(s, &column[0].kind, &column[0].ns,
						     sizeof(column[0]), 4),
				 -EINVAL);
	}
	hist_set_free(s);
	hist_set_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),      cmocka_unit_test(test_variance),
		cmocka_unit_test(test_small_variance), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_range_ends),     cmocka_unit_test(test_unsigned_values),
		cmocka_unit_test(test_single_value),   cmocka_unit_test(test_threshold_is_strict),
		cmocka_unit_test(test_clear),	       cmocka_unit_test(test_merge),
		cmocka_unit_test(test_log2),	       cmocka_unit_test(test_set),
	};

	return cmocka_run_group_tests_name("hist", tests, NULL, NULL);
}
