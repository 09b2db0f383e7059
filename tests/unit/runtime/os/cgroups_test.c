/* SPDX-License-Identifier: GPL-2.0-only */
/* Uses a tree of plain directories, which are the same for the walk. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "os/cgroups.h"
#include "error.h"

static char root[] = "/tmp/cgroups_test.XXXXXX";

static int set_up(void **state)
{
	static const char *const dirs[] = {
		"system.slice", "system.slice/cron.service", "system.slice/ssh.service",
		"user.slice",	"user.slice/user-0",	     "a+b"};
	char path[256];

	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, dirs[i]);
		if (mkdir(path, 0700))
			return -1;
	}
	snprintf(path, sizeof(path), "%s/cgroup.procs", root);
	return fclose(fopen(path, "w"));
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The groups that are found, relative and sorted, as "a b"; or the message. */
static const char *find(const char *one, const char *two)
{
	const char *const names[] = {one, two, NULL};
	static char result[1024];
	struct error err = {0};
	char *dirs = cgroups_find(root, names, &err), *list[16], *rest;
	int n = 0;

	result[0] = 0;
	if (!dirs) {
		snprintf(result, sizeof(result), "%s", err.text);
		return result;
	}
	for (char *dir = strtok_r(dirs, "\n", &rest); dir; dir = strtok_r(NULL, "\n", &rest))
		list[n++] = dir + strlen(root);
	qsort(list, n, sizeof(list[0]), compare);
	for (int i = 0; i < n; i++) {
		strcat(result, i ? " " : "");
		strcat(result, list[i][0] ? list[i] : "root");
	}
	free(dirs);
	return result;
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(find("user.slice", NULL), "/user.slice");
	assert_string_equal(find("/user.slice/", "system.slice/ssh.service"),
			    "/system.slice/ssh.service /user.slice");
	assert_string_equal(find("", NULL), "root");
	assert_string_equal(find("/", NULL), "root");
}

/* Events of a group are also events of those around it. */
static void test_nested(void **state)
{
	(void)state;
	assert_string_equal(find("system.slice/ssh.service", "system.slice"), "/system.slice");
	assert_string_equal(find("", "user.slice"), "root");
	assert_string_equal(find("user.slice", "user.slice"), "/user.slice");
}

static void test_expressions(void **state)
{
	(void)state;
	assert_string_equal(find("ser(vice|-0)$", NULL),
			    "/system.slice/cron.service /system.slice/ssh.service "
			    "/user.slice/user-0");
	assert_string_equal(find("^user", NULL), "/user.slice");
	assert_string_equal(find(".*", NULL), "/a+b /system.slice /user.slice");
	assert_string_equal(find("", ".*"), "root");
	assert_string_equal(find("a\\+b", NULL), "/a+b");
}

static void test_unmatched(void **state)
{
	(void)state;
	assert_string_equal(find("usr.slice", NULL),
			    "no cgroup 'usr.slice'; did you mean 'user.slice'?");
	assert_string_equal(find("user.slice", "nothing/like/it"), "no cgroup 'nothing/like/it'");
	assert_string_equal(find("^slice", NULL), "no cgroup matches '^slice'");
	assert_non_null(strstr(find("(", NULL), "invalid cgroup expression '(': "));
}

/* The place of the hierarchy according to this table of mounts. */
static char *root_of(const char *mounts)
{
	char path[] = "/tmp/cgroups_test.XXXXXX", *found;
	FILE *f = fdopen(mkstemp(path), "w");

	fputs(mounts, f);
	fclose(f);
	found = cgroups_root(path, NULL);
	remove(path);
	return found;
}

static void test_asked(void **state)
{
	const char *plain[] = {"a/b", NULL}, *expression[] = {"^a/.$", NULL}, *root[] = {"/", NULL};
	const char *wrong[] = {"(", NULL};
	struct error err;

	(void)state;
	assert_int_equal(cgroups_asked(plain, "/a/b", &err), 1);
	assert_int_equal(cgroups_asked(plain, "/a/b/c/d", &err), 1);
	assert_int_equal(cgroups_asked(plain, "/a", &err), 0);
	assert_int_equal(cgroups_asked(plain, "/a/bc", &err), 0);
	assert_int_equal(cgroups_asked(plain, "/", &err), 0);
	assert_int_equal(cgroups_asked(plain, "17", &err), 0); /* of an unknown group */
	assert_int_equal(cgroups_asked(expression, "/a/b/c", &err), 1);
	assert_int_equal(cgroups_asked(expression, "/x/a/b", &err), 0);
	assert_int_equal(cgroups_asked(expression, "/", &err), 0);
	assert_int_equal(cgroups_asked(root, "/", &err), 1);
	assert_int_equal(cgroups_asked(root, "/a/b", &err), 1);
	assert_int_equal(cgroups_asked(wrong, "/a", &err), -EINVAL);
}

static void check_root(const char *mounts, const char *expected)
{
	char *found = root_of(mounts);

	if (expected)
		assert_string_equal(found, expected);
	else
		assert_null(found);
	free(found);
}

static void test_mounts(void **state)
{
	(void)state;
	check_root("", NULL);
	check_root("proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", NULL);
	check_root("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "/sys/fs/cgroup");
	check_root("cgroup2 /cg/unified cgroup2 rw 0 0\ncgroup /cg/p cgroup rw,perf_event 0 0\n",
		   "/cg/p");
	check_root("none /a\\040b cgroup2 rw 0 0\nnone /c cgroup2 rw 0 0\n", "/a b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	    cmocka_unit_test(test_nested),
		cmocka_unit_test(test_expressions), cmocka_unit_test(test_unmatched),
		cmocka_unit_test(test_mounts),	    cmocka_unit_test(test_asked),
	};

	return cmocka_run_group_tests_name("cgroups", tests, set_up, tear_down);
}
