/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/recording/features.c: the caches that a recording describes, whole and damaged. */
#include "recording/features.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include "error.h"
#include "os/cpus.h"
#include "recording/recording.h"

/* A feature under construction. */
struct bytes {
	uint8_t at[4096];
	size_t size;
};

static void add_u32(struct bytes *b, uint32_t value)
{
	memcpy(b->at + b->size, &value, sizeof(value));
	b->size += sizeof(value);
}

/* As perf does: with the NUL, padded with more of them. */
static void add_string(struct bytes *b, const char *text)
{
	size_t size = strlen(text) / 8 * 8 + 8;

	add_u32(b, size);
	memset(b->at + b->size, 0, size);
	memcpy(b->at + b->size, text, strlen(text));
	b->size += size;
}

static void add_cache(struct bytes *b, uint32_t level, const char *type, const char *cpus)
{
	add_u32(b, level);
	add_u32(b, 64);
	add_u32(b, 512);
	add_u32(b, 8);
	add_string(b, type);
	add_string(b, "256K");
	add_string(b, cpus);
}

static struct bytes new_caches(uint32_t version, uint32_t nr)
{
	struct bytes b = {};

	add_u32(&b, version);
	add_u32(&b, nr);
	return b;
}

/* Reads just these bytes: nothing follows them in memory. */
static bool read_caches(struct features *f, const struct bytes *b, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	bool ok;

	assert_non_null(copy);
	memcpy(copy, b->at, size);
	assert_true(features_init(f));
	ok = features_read(f, FEATURE_CACHE, copy, size);
	free(copy);
	return ok;
}

static int sharer(const struct features *f, int level, int cpu)
{
	return f->first_sharers[level - 1] ? f->first_sharers[level - 1][cpu] - 1 : -1;
}

static void test_caches(void **state)
{
	struct bytes b = new_caches(1, 6);
	struct features f;

	(void)state;
	add_cache(&b, 1, "Data", "0");
	add_cache(&b, 1, "Instruction", "0-7"); /* no data cache */
	add_cache(&b, 2, "Unified", "0,4");
	add_cache(&b, 2, "Unified", "1,5-6");
	add_cache(&b, 3, "Unified", "0-8191");
	add_cache(&b, 9, "Unified", "0"); /* irrelevant */
	assert_true(read_caches(&f, &b, b.size));
	assert_int_equal(sharer(&f, 1, 0), 0);
	assert_int_equal(sharer(&f, 1, 1), -1);
	assert_int_equal(sharer(&f, 2, 4), 0);
	assert_int_equal(sharer(&f, 2, 6), 1);
	assert_int_equal(sharer(&f, 2, 7), -1);
	assert_int_equal(sharer(&f, 3, CPUS_MAX - 1), 0);
	assert_int_equal(sharer(&f, 4, 0), -1);
	features_clear(&f);
}

/* Truncated anywhere it is damaged, and the caches before that are known. */
static void test_truncated_caches(void **state)
{
	struct bytes b = new_caches(1, 3);
	size_t second, third;

	(void)state;
	add_cache(&b, 2, "Unified", "0-1");
	second = b.size;
	add_cache(&b, 2, "Unified", "2-3");
	third = b.size;
	add_cache(&b, 3, "Unified", "0-3");
	for (size_t size = 0; size < b.size; size++) {
		struct features f;

		assert_false(read_caches(&f, &b, size));
		assert_int_equal(sharer(&f, 2, 1), size >= second ? 0 : -1);
		assert_int_equal(sharer(&f, 2, 3), size >= third ? 2 : -1);
		assert_int_equal(sharer(&f, 3, 3), -1);
		features_clear(&f);
	}
}

/* Any byte may be wrong: the results are about possible CPUs. */
static void test_damaged_caches(void **state)
{
	static const uint8_t wrong[] = {0, 1, '-', ',', 0x7f, 0x80, 0xff};
	struct bytes b = new_caches(1, 2);

	(void)state;
	add_cache(&b, 2, "Unified", "0-1");
	add_cache(&b, 3, "Unified", "0-3,5");
	for (size_t i = 0; i < b.size; i++)
		for (size_t k = 0; k < sizeof(wrong); k++) {
			struct bytes damaged = b;
			struct features f;

			damaged.at[i] = wrong[k];
			read_caches(&f, &damaged, damaged.size);
			for (int level = 1; level <= CACHE_LEVELS; level++)
				for (int cpu = 0; cpu < CPUS_MAX; cpu += cpu < 16 ? 1 : 1021) {
					assert_true(sharer(&f, level, cpu) >= -1);
					assert_true(sharer(&f, level, cpu) <= cpu);
				}
			features_clear(&f);
		}
}

static void test_refused_caches(void **state)
{
	static const char *const lists[] = {
		"", "x", "3-", "3-1", "0-8192", "99999999999999999999", "0,", "-1"};
	struct bytes b = new_caches(2, 0);
	struct features f;

	(void)state;
	assert_false(read_caches(&f, &b, b.size)); /* of a future version */
	features_clear(&f);
	b = new_caches(1, UINT32_MAX);
	assert_false(read_caches(&f, &b, b.size));
	features_clear(&f);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		b = new_caches(1, 1);
		add_cache(&b, 3, "Unified", lists[i]);
		assert_false(read_caches(&f, &b, b.size));
		assert_int_equal(sharer(&f, 3, 0), -1);
		features_clear(&f);
	}
	b = new_caches(1, 0);
	assert_true(read_caches(&f, &b, b.size)); /* a machine that reports no caches */
	assert_null(f.first_sharers[0]);
	features_clear(&f);
}

static void add_node(struct bytes *b, uint32_t node, const char *cpus)
{
	add_u32(b, node);
	b->size += 2 * sizeof(uint64_t); /* its memory */
	add_string(b, cpus);
}

/* Nodes with CPUs, and one that has only memory; then one more than there are. */
static void test_nodes(void **state)
{
	static const int wanted[] = {1, 1, 3, 3, 1, 0};
	struct bytes b = {};
	struct features f;

	(void)state;
	add_u32(&b, 3);
	add_node(&b, 0, "0-1,4");
	add_node(&b, 2, "2-3");
	add_node(&b, 3, "");
	assert_true(features_init(&f));
	assert_true(features_read(&f, FEATURE_NUMA_TOPOLOGY, b.at, b.size));
	for (int cpu = 0; cpu < 6; cpu++)
		assert_int_equal(f.nodes[cpu], wanted[cpu]);
	features_clear(&f);
	b.at[0]++;
	assert_true(features_init(&f));
	assert_false(features_read(&f, FEATURE_NUMA_TOPOLOGY, b.at, b.size));
	assert_int_equal(f.nodes[2], 3);
	features_clear(&f);
}

/* In the guest of migrate.data two CPUs share an L2 cache, and four an L3 cache. */
static void test_golden(void **state)
{
	struct error err;
	struct source *r = recording_open("tests/recordings/migrate.data", &err);

	(void)state;
	assert_non_null(r);
	for (int cpu = 0; cpu < 8; cpu++) {
		assert_int_equal(r->info.first_sharers[0][cpu], cpu + 1);
		assert_int_equal(r->info.first_sharers[1][cpu], cpu / 2 * 2 + 1);
		assert_int_equal(r->info.first_sharers[2][cpu], cpu / 4 * 4 + 1);
		assert_true(!r->info.first_sharers[3] || !r->info.first_sharers[3][cpu]);
	}
	assert_int_equal(r->info.first_sharers[2][8], 0);
	r->ops->free(r);

	r = recording_open("tests/recordings/pipe.data", &err);
	assert_non_null(r);
	assert_string_equal(r->warning.text, "");
	r->ops->free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caches),	       cmocka_unit_test(test_truncated_caches),
		cmocka_unit_test(test_damaged_caches), cmocka_unit_test(test_refused_caches),
		cmocka_unit_test(test_golden),	       cmocka_unit_test(test_nodes),
	};

	return cmocka_run_group_tests_name("features", tests, NULL, NULL);
}
