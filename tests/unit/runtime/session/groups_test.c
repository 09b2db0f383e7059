/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/session/groups.c: records of control groups, also ones that are damaged. */
#include "session/groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>

/* Notes a group; its record has room for `room` bytes of the path. */
static void note(struct groups *g, uint64_t id, const char *path, size_t room)
{
	struct {
		struct perf_event_header header;
		uint64_t id;
		char path[64];
	} rec = {.header = {.type = PERF_RECORD_CGROUP, .size = 16 + room}, .id = id};

	strncpy(rec.path, path, sizeof(rec.path));
	groups_note(g, &rec.header);
}

static void test_groups(void **state)
{
	struct groups *g = groups_new();

	(void)state;
	assert_null(groups_path(g, 1));
	assert_int_equal(groups_id(g, 0), 0);
	note(g, 1, "/", 8);
	note(g, 70000000000, "/web/in", 8);
	note(g, 70000000000, "/other", 8);
	note(g, 3, "/exactly-16-long", 16);
	note(g, 4, "/cut-here", 4);
	note(g, 5, "", 0); /* no path at all */
	assert_string_equal(groups_path(g, 1), "/");
	assert_string_equal(groups_path(g, 70000000000), "/web/in");
	assert_string_equal(groups_path(g, 3), "/exactly-16-long");
	assert_string_equal(groups_path(g, 4), "/cut");
	assert_null(groups_path(g, 5));
	assert_int_equal(groups_id(g, 1), 70000000000);
	assert_int_equal(groups_id(g, 4), 0);
	for (uint64_t id = 100; id < 1000; id++)
		note(g, id, "/many", 8);
	assert_string_equal(groups_path(g, 999), "/many");
	groups_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
