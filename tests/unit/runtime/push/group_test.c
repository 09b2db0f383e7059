/* SPDX-License-Identifier: GPL-2.0-only */
/* Groups of records, compressed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "push/group.h"

enum { COMPRESSED = 81 };

/* Records that do not compress need two records of their group. */
static void incompressible(void **state)
{
	struct group_pool pool = {0};
	struct group *g = group_new(&pool);
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_DCtx *d = ZSTD_createDCtx();
	struct perf_event_header rec;
	static uint8_t out[2 * GROUP_ROOM], packed[2 * GROUP_ROOM];
	size_t size, at = 0, n = 0;
	const uint8_t *bytes;

	(void)state;
	for (int i = 0; i < GROUP_ROOM; i++)
		g->data[i] = random() >> 8;
	g->size = GROUP_ROOM;
	g->skip = offsetof(struct group_front, group);
	g = group_end(g);
	assert_true(group_pack(g, c));
	bytes = group_bytes(g, true, &size);
	assert_true(size > GROUP_ROOM);
	for (at = sizeof(struct wire_group); at < size; at += rec.size) {
		memcpy(&rec, bytes + at, sizeof(rec));
		assert_int_equal(rec.type, COMPRESSED);
		memcpy(packed + n, bytes + at + sizeof(rec), rec.size - sizeof(rec));
		n += rec.size - sizeof(rec);
	}
	assert_int_equal(at, size);
	assert_int_equal(ZSTD_decompressDCtx(d, out, sizeof(out), packed, n), GROUP_ROOM + 8);
	assert_memory_equal(out, g->data, GROUP_ROOM + 8);
	group_free(g);
	group_pool_clear(&pool);
	ZSTD_freeCCtx(c);
	ZSTD_freeDCtx(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(incompressible),
	};

	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
