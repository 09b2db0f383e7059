/* SPDX-License-Identifier: GPL-2.0-only */
/* What processes use of the tables' memory becomes free again, even when there is too
 * little of it; a file that has changed has other tables. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "stacks/frame_rows.h"
#include "stacks/frame_tables.h"

#ifdef __x86_64__

enum { ROWS = 1 << 20, SPANS = 1024, ROUNDS = 20 };

static struct frame_row rows[ROWS];
static struct frame_span spans[SPANS];

static struct frame_tables_stats stats_of(const struct frame_tables *t)
{
	struct frame_tables_stats stats;

	frame_tables_read_stats(t, &stats);
	return stats;
}

static void becomes_free(void **state)
{
	struct frame_tables *t = frame_tables_new(rows, ROWS, spans, SPANS);
	struct frame_tables_stats first, stats;
	struct frame_space space = {0};

	(void)state;
	assert_non_null(t);
	assert_int_equal(frame_tables_update(t, getpid(), &space), 0);
	first = stats_of(t);
	assert_int_equal(first.processes, 1);
	assert_int_equal(first.spans, space.count);
	assert_true(first.files > 1 && first.files <= space.count);
	assert_true(first.rows > 1000);
	assert_int_equal(first.no_room + first.no_spans, 0);
	for (uint32_t i = 1; i < space.count; i++)
		assert_true(spans[space.first + i - 1].end <= spans[space.first + i].start);

	for (int i = 0; i < ROUNDS; i++) {
		frame_tables_reclaim(t);
		assert_int_equal(frame_tables_update(t, getpid(), &space), 0);
	}
	stats = stats_of(t);
	assert_int_equal(stats.files, first.files);
	assert_int_equal(stats.rows, first.rows);
	assert_true(stats.spans <= 3 * space.count);

	frame_tables_remove(t, getpid());
	assert_int_equal(stats_of(t).rows, first.rows); /* a program may be reading them */
	frame_tables_reclaim(t);
	frame_tables_reclaim(t);
	stats = stats_of(t);
	assert_int_equal(stats.files + stats.processes + stats.rows + stats.spans + stats.others,
			 0);
	frame_tables_free(t);
}

static void without_room(void **state)
{
	struct frame_tables *t = frame_tables_new(rows, 1, spans, 1);
	struct frame_space space = {0};
	struct frame_tables_stats stats;

	(void)state;
	assert_non_null(t);
	assert_int_equal(frame_tables_update(t, getpid(), &space), -ENOSPC);
	stats = stats_of(t);
	assert_int_equal(space.count, 0);
	assert_int_equal(stats.no_spans, 1);
	assert_true(stats.no_room > 0);
	assert_int_equal(stats.files + stats.rows + stats.spans, 0);
	frame_tables_free(t);
}

/* Gives a file the contents of another one, and returns how many rows its mapping then has. */
static uint32_t rows_with(struct frame_tables *t, int fd, const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	uint32_t count = 0;
	struct frame_space space;
	struct stat st;
	char *map;

	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(fstat(from, &st), 0);
	for (off_t at = 0; at < st.st_size;) {
		char part[1 << 16];
		ssize_t n = pread(from, part, sizeof(part), at);

		assert_true(n > 0);
		assert_int_equal(pwrite(fd, part, (size_t)n, at), n);
		at += n;
	}
	close(from);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(frame_tables_update(t, getpid(), &space), 0);
	for (uint32_t i = space.first; i < space.first + space.count; i++)
		if (spans[i].start == (uintptr_t)map)
			count = spans[i].count;
	munmap(map, (size_t)st.st_size);
	return count;
}

static void has_changed(void **state)
{
	struct frame_tables *t = frame_tables_new(rows, ROWS, spans, SPANS);
	int fd = memfd_create("program", MFD_CLOEXEC);
	uint32_t before, now;

	(void)state;
	assert_non_null(t);
	assert_true(fd >= 0);
	before = rows_with(t, fd, "/bin/bash");
	usleep(20000); /* more than a tick of the time of a change */
	now = rows_with(t, fd, "/bin/ls");
	assert_true(before > 0);
	assert_true(now > 0);
	assert_int_not_equal(now, before);
	close(fd);
	frame_tables_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(becomes_free),
		cmocka_unit_test(without_room),
		cmocka_unit_test(has_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("1..0 # SKIP unwind tables are those of x86-64");
	return 0;
}

#endif
