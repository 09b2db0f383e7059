/* SPDX-License-Identifier: GPL-2.0-only */
/* native/intern.c: dense ids, equality across types, tuples, bounds, reading keys back. */
#include "native/intern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t intern_u64(struct intern *t, uint64_t value)
{
	intern_push_uint(t, value);
	return intern_commit(t);
}

static uint32_t intern_bytes(struct intern *t, const char *bytes, size_t size)
{
	intern_push_bytes(t, bytes, size);
	return intern_commit(t);
}

static void test_dense_ids(void **state)
{
	struct intern *t = intern_new(1 << 20);

	(void)state;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 100000; i++)
			assert_int_equal(intern_u64(t, i * 0x100000001ULL), i);
	assert_int_equal(intern_count(t), 100000);
	intern_clear(t);
	assert_int_equal(intern_count(t), 0);
	assert_int_equal(intern_u64(t, 42), 0);
	intern_free(t);
	intern_free(NULL);
}

static void test_strings(void **state)
{
	struct intern *t = intern_new(1 << 20);
	char name[32];

	(void)state;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 20000; i++) {
			int n = snprintf(name, sizeof(name), "%.*s%u", (int)(i % 9), "kworker/", i);

			assert_int_equal(intern_bytes(t, name, (size_t)n), i);
		}
	/* A shorter string differs from one that ends with its padding. */
	assert_int_equal(intern_bytes(t, "a\0", 2), 20000);
	assert_int_equal(intern_bytes(t, "a", 1), 20001);
	assert_int_equal(intern_bytes(t, "", 0), 20002);
	intern_free(t);
}

static void test_equal_integers_are_one_key(void **state)
{
	struct intern *t = intern_new(100);
	uint32_t id = intern_u64(t, 5);

	(void)state;
	assert_int_equal(intern_number(t, 5), id);
	intern_push_int(t, 5);
	assert_int_equal(intern_commit(t), id);
	assert_int_equal(intern_number(t, 0), intern_number(t, -0.0));
	assert_int_equal(intern_number(t, 0x1p63), intern_u64(t, 1ULL << 63));
	id = intern_number(t, -0x1p63);
	intern_push_int(t, INT64_MIN);
	assert_int_equal(intern_commit(t), id);

	assert_int_not_equal(intern_u64(t, UINT64_MAX), intern_number(t, -1));
	assert_int_not_equal(intern_number(t, 5.5), intern_u64(t, 5));
	assert_int_not_equal(intern_bytes(t, "\5\0\0\0\0\0\0", 8), intern_u64(t, 5));
	intern_free(t);
}

static uint32_t pair(struct intern *t, const char *name, uint64_t value)
{
	intern_push_bytes(t, name, strlen(name));
	intern_push_uint(t, value);
	return intern_commit(t);
}

static void test_tuples(void **state)
{
	struct intern *t = intern_new(100);

	(void)state;
	assert_int_equal(pair(t, "sh", 1), 0);
	assert_int_equal(pair(t, "sh", 2), 1);
	assert_int_equal(pair(t, "bash", 1), 2);
	assert_int_equal(pair(t, "sh", 1), 0);
	assert_int_equal(intern_bytes(t, "sh", 2), 3);
	assert_int_equal(intern_u64(t, 1), 4);
	assert_int_equal(intern_commit(t), 5); /* no parts */
	assert_int_equal(intern_commit(t), 5);

	intern_push_bytes(t, "left over", 9);
	intern_cancel(t);
	assert_int_equal(intern_u64(t, 1), 4);

	for (int i = 0; i < 6; i++)
		intern_push_int(t, i);
	assert_int_equal(intern_commit(t), 6);
	for (int i = 0; i < 4; i++)
		intern_push_int(t, i);
	assert_int_equal(intern_commit(t), 6);
	intern_free(t);
}

static void test_parts(void **state)
{
	struct intern *t = intern_new(100);
	struct intern_part part;

	(void)state;
	intern_u64(t, 0);
	intern_push_bytes(t, "kworker/0:1", 11);
	intern_push_int(t, -7);
	intern_push_uint(t, UINT64_MAX);
	intern_push_number(t, 0.25);
	assert_int_equal(intern_commit(t), 1);

	assert_int_equal(intern_part(t, 1, 0, &part), 1);
	assert_int_equal(part.kind, INTERN_STRING);
	assert_int_equal(part.size, 11);
	assert_memory_equal(part.bytes, "kworker/0:1", 11);
	assert_int_equal(intern_part(t, 1, 1, &part), 1);
	assert_int_equal(part.kind, INTERN_INT);
	assert_int_equal(part.i, -7);
	assert_int_equal(intern_part(t, 1, 2, &part), 1);
	assert_int_equal(part.kind, INTERN_UINT);
	assert_true((uint64_t)part.i == UINT64_MAX);
	assert_int_equal(intern_part(t, 1, 3, &part), 1);
	assert_int_equal(part.kind, INTERN_DOUBLE);
	assert_true(part.d == 0.25);

	assert_int_equal(intern_part(t, 1, 4, &part), 0);
	assert_int_equal(intern_part(t, 2, 0, &part), 0);
	assert_int_equal(intern_part(t, UINT32_MAX, 0, &part), 0);
	intern_free(t);
}

static void test_overflow_bucket(void **state)
{
	struct intern *t = intern_new(1000);

	(void)state;
	for (uint32_t i = 0; i < 1500; i++)
		assert_int_equal(intern_u64(t, i), i < 1000 ? i : 1000);
	assert_int_equal(intern_count(t), 1000);
	assert_int_equal(intern_overflow(t), 500);
	assert_int_equal(intern_u64(t, 999), 999);
	intern_add_overflow(t, 7);
	assert_int_equal(intern_overflow(t), 507);
	intern_clear(t);
	assert_int_equal(intern_overflow(t), 0);
	assert_int_equal(intern_u64(t, 1400), 0);
	intern_free(t);
}

static void test_no_keys_allowed(void **state)
{
	struct intern *t = intern_new(0);

	(void)state;
	assert_int_equal(intern_u64(t, 1), 0);
	assert_int_equal(intern_count(t), 0);
	assert_int_equal(intern_overflow(t), 1);
	intern_free(t);
}

static void test_long_strings(void **state)
{
	enum { SIZE = 100000 };
	struct intern *t = intern_new(UINT32_MAX);
	char *s = malloc(SIZE);
	struct intern_part part;
	uint32_t n = 0;

	(void)state;
	memset(s, 'x', SIZE);
	for (int i = 0; i < INTERN_PARTS; i++)
		intern_push_bytes(t, s, SIZE);
	assert_int_equal(intern_commit(t), 0);
	assert_int_equal(intern_part(t, 0, 3, &part), 1);
	assert_int_equal(part.size, INTERN_BYTES);
	assert_int_equal(intern_bytes(t, s, INTERN_BYTES), intern_bytes(t, s, SIZE));

	/* The number of the largest keys is limited by the memory limit. */
	while (!intern_overflow(t) && n < 20000) {
		memcpy(s, &n, sizeof(n));
		intern_bytes(t, s, SIZE);
		n++;
	}
	assert_in_range(n, 10000, 17000);
	memcpy(s, &(uint32_t){0}, sizeof(n));
	assert_int_equal(intern_bytes(t, s, SIZE), 2);
	free(s);
	intern_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dense_ids),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_equal_integers_are_one_key),
		cmocka_unit_test(test_tuples),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_overflow_bucket),
		cmocka_unit_test(test_no_keys_allowed),
		cmocka_unit_test(test_long_strings),
	};

	return cmocka_run_group_tests_name("intern", tests, NULL, NULL);
}
