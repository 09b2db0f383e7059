/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/symbols/process_file.c: only regular files are opened. */
#include "symbols/process_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/process_file_test.XXXXXX";

/* Returns how often the file was opened meanwhile. */
static int opened(int watcher)
{
	struct inotify_event ev;
	int n = 0;

	while (read(watcher, &ev, sizeof(ev)) == sizeof(ev))
		n += !!(ev.mask & IN_OPEN);
	return n;
}

static void try_open(const char *path, int want)
{
	static const char *const roots[] = {NULL, "/"};
	int watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(inotify_add_watch(watcher, path, IN_OPEN) >= 0);
	for (int i = 0; i < 2; i++) {
		int fd = process_file_open(roots[i], path);

		if (want)
			assert_int_equal(fd, want);
		else
			assert_true(fd >= 0);
		/* A device may do something when it is opened. */
		assert_int_equal(opened(watcher), want ? 0 : 1);
		if (fd >= 0)
			assert_int_equal(close(fd), 0);
	}
	assert_int_equal(close(watcher), 0);
}

static void only_regular_files(void **state)
{
	char file[64], fifo[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_return_code(close(creat(file, 0600)), errno);
	assert_return_code(mkfifo(fifo, 0600), errno);
	try_open(file, 0);
	try_open(fifo, -EINVAL);
	try_open(dir, -EINVAL);
	assert_return_code(unlink(file), errno);
	assert_return_code(unlink(fifo), errno);
	assert_int_equal(process_file_open(NULL, file), -ENOENT);
	assert_int_equal(process_file_open("/", file), -ENOENT);
	assert_return_code(rmdir(dir), errno);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_regular_files),
	};

	return cmocka_run_group_tests_name("process_file", tests, NULL, NULL);
}
