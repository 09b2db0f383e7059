/* SPDX-License-Identifier: GPL-2.0-only */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "session/tasks.h"

static void unknown_and_idle(void **state)
{
	struct tasks *t = tasks_new(10);

	(void)state;
	assert_string_equal(tasks_name(t, 0, 1), "swapper");
	assert_string_equal(tasks_name(t, 77, 1), "<...>");
	assert_string_equal(tasks_name(t, -1, 1), "<...>");
	assert_string_equal(tasks_name(t, INT32_MAX, 1), "<...>");
	tasks_set(t, -5, "x", 1);
	tasks_set(t, 0, "x", 1);
	tasks_set(t, 1 << 22, "x", 1);
	tasks_exit(t, 7, -5, 1);
	tasks_exit(t, 7, 77, 1);
	assert_string_equal(tasks_name(t, -5, 1), "<...>");
	assert_string_equal(tasks_name(t, 1 << 22, 1), "<...>");
	assert_string_equal(tasks_name(t, 0, 1), "swapper");
	tasks_free(t);
}

static void names_follow_time(void **state)
{
	struct tasks *t = tasks_new(10);

	(void)state;
	tasks_set(t, 100, "bash", -INFINITY);
	tasks_fork(t, 200, 100, 10);
	tasks_set(t, 200, "perf-exec", 20);
	tasks_set(t, 200, "a\nname\xff too long to keep", 30);
	assert_string_equal(tasks_name(t, 200, 5), "bash");
	assert_string_equal(tasks_name(t, 200, 19), "bash");
	assert_string_equal(tasks_name(t, 200, 20), "perf-exec");
	assert_string_equal(tasks_name(t, 200, 29), "perf-exec");
	assert_string_equal(tasks_name(t, 200, 30), "a\nname\xff too lon");
	assert_string_equal(tasks_name(t, 100, 1e18), "bash");
	tasks_free(t);
}

static void fork_takes_the_name_of_its_time(void **state)
{
	struct tasks *t = tasks_new(10);

	(void)state;
	tasks_set(t, 1, "old", 0);
	tasks_set(t, 1, "new", 10);
	tasks_fork(t, 2, 1, 5);
	tasks_fork(t, 3, 1, 15);
	tasks_fork(t, 4, 0, 15);
	tasks_fork(t, 5, 999, 15);
	assert_string_equal(tasks_name(t, 2, 20), "old");
	assert_string_equal(tasks_name(t, 3, 20), "new");
	assert_string_equal(tasks_name(t, 4, 20), "swapper");
	assert_string_equal(tasks_name(t, 5, 20), "<...>");
	/* The child is known from /proc, its parent is not. */
	tasks_set(t, 6, "scanned", -INFINITY);
	tasks_fork(t, 6, 999, 15);
	assert_string_equal(tasks_name(t, 6, 20), "scanned");
	tasks_free(t);
}

static void reused_tid_has_two_lives(void **state)
{
	struct tasks *t = tasks_new(10);

	(void)state;
	tasks_set(t, 1, "init", 0);
	tasks_set(t, 50, "first", 10);
	tasks_exit(t, 7, 50, 20);
	assert_string_equal(tasks_name(t, 50, 25), "first");
	tasks_fork(t, 50, 1, 30);
	tasks_set(t, 50, "second", 35);
	assert_string_equal(tasks_name(t, 50, 15), "first");
	assert_string_equal(tasks_name(t, 50, 32), "init");
	assert_string_equal(tasks_name(t, 50, 40), "second");
	/* A late exit must not end the second life. */
	tasks_exit(t, 7, 50, 20);
	for (int tid = 100; tid < 120; tid++) {
		tasks_fork(t, tid, 1, tid);
		tasks_exit(t, 7, tid, tid + 0.5);
	}
	assert_string_equal(tasks_name(t, 50, 200), "second");
	tasks_free(t);
}

static void ended_tasks_are_forgotten_oldest_first(void **state)
{
	struct tasks *t = tasks_new(3);

	(void)state;
	tasks_set(t, 1, "parent", 0);
	for (int tid = 10; tid < 16; tid++)
		tasks_fork(t, tid, 1, 1);
	for (int tid = 15; tid > 10; tid--)
		tasks_exit(t, 7, tid, 20 - tid);
	tasks_exit(t, 7, 11, 99);
	assert_string_equal(tasks_name(t, 15, 50), "<...>");
	assert_string_equal(tasks_name(t, 14, 50), "<...>");
	assert_string_equal(tasks_name(t, 13, 50), "parent");
	assert_string_equal(tasks_name(t, 11, 50), "parent");
	/* A name given after the end shows that the tid is in use again: it is no longer evicted.
	 */
	tasks_set(t, 13, "again", 50);
	tasks_exit(t, 7, 10, 60);
	tasks_exit(t, 7, 1, 61);
	assert_string_equal(tasks_name(t, 13, 70), "again");
	assert_string_equal(tasks_name(t, 12, 70), "<...>");
	assert_int_equal(tasks_pid_of_ended(t, 10), 7);
	assert_int_equal(tasks_pid_of_ended(t, 13), -1);
	assert_int_equal(tasks_pid_of_ended(t, -1), -1);
	tasks_free(t);
}

static void nothing_is_kept_of_the_ended(void **state)
{
	struct tasks *t = tasks_new(0);

	(void)state;
	for (int i = 0; i < 100000; i++) {
		int tid = 1 + i % (1 << 22);

		tasks_set(t, tid, "x", i);
		tasks_exit(t, 7, tid, i);
		assert_string_equal(tasks_name(t, tid, i), "<...>");
	}
	tasks_free(t);
}

static void history_is_bounded(void **state)
{
	struct tasks *t = tasks_new(10);
	char name[16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		tasks_set(t, 7, name, i);
	}
	assert_string_equal(tasks_name(t, 7, -1), "name0");
	assert_string_equal(tasks_name(t, 7, 91.5), "name0");
	for (int i = 92; i < 100; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		assert_string_equal(tasks_name(t, 7, i + 0.5), name);
	}
	/* Too old for a place; then one that is not. */
	tasks_set(t, 7, "late", 50);
	assert_string_equal(tasks_name(t, 7, 60), "name0");
	tasks_set(t, 7, "late", 95.5);
	assert_string_equal(tasks_name(t, 7, 95.2), "name95");
	assert_string_equal(tasks_name(t, 7, 95.7), "late");
	assert_string_equal(tasks_name(t, 7, 92.5), "name0");
	assert_string_equal(tasks_name(t, 7, 99), "name99");
	tasks_free(t);
}

static void late_records_are_put_in_order(void **state)
{
	struct tasks *t = tasks_new(10);

	(void)state;
	tasks_set(t, 7, "c", 30);
	tasks_set(t, 7, "a", 10);
	tasks_set(t, 7, "b", 20);
	tasks_set(t, 7, "B", 20);
	tasks_set(t, 7, "z", -INFINITY);
	assert_string_equal(tasks_name(t, 7, 0), "z");
	assert_string_equal(tasks_name(t, 7, 15), "a");
	assert_string_equal(tasks_name(t, 7, 25), "B");
	assert_string_equal(tasks_name(t, 7, 35), "c");
	tasks_free(t);
}

struct other {
	pthread_barrier_t named, done;
	int32_t tid;
};

static void *other_thread(void *arg)
{
	struct other *other = arg;

	other->tid = syscall(SYS_gettid);
	prctl(PR_SET_NAME, "other thread");
	pthread_barrier_wait(&other->named);
	pthread_barrier_wait(&other->done);
	return NULL;
}

static void scan_finds_us(void **state)
{
	struct tasks *t = tasks_new(10);
	struct other other;
	pthread_t thread;
	int n;

	(void)state;
	pthread_barrier_init(&other.named, NULL, 2);
	pthread_barrier_init(&other.done, NULL, 2);
	prctl(PR_SET_NAME, "alone-here+1");
	n = tasks_scan(t);
	assert_true(n >= 1);
	assert_string_equal(tasks_name(t, getpid(), -1e18), "alone-here+1");
	prctl(PR_SET_NAME, "main thread");
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &other), 0);
	pthread_barrier_wait(&other.named);
	tasks_scan(t);
	assert_string_equal(tasks_name(t, getpid(), 0), "main thread");
	assert_string_equal(tasks_name(t, other.tid, 0), "other thread");
	pthread_barrier_wait(&other.done);
	pthread_join(thread, NULL);
	/* The work item of a kernel worker is not part of its name. */
	prctl(PR_SET_NAME, "kworker/7:1-eve");
	tasks_scan(t);
	assert_string_equal(tasks_name(t, getpid(), 0), "kworker/7:1");
	prctl(PR_SET_NAME, "kworker/R-a-b");
	tasks_scan(t);
	assert_string_equal(tasks_name(t, getpid(), 0), "kworker/R-a-b");
	tasks_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_and_idle),
		cmocka_unit_test(names_follow_time),
		cmocka_unit_test(fork_takes_the_name_of_its_time),
		cmocka_unit_test(reused_tid_has_two_lives),
		cmocka_unit_test(ended_tasks_are_forgotten_oldest_first),
		cmocka_unit_test(nothing_is_kept_of_the_ended),
		cmocka_unit_test(history_is_bounded),
		cmocka_unit_test(late_records_are_put_in_order),
		cmocka_unit_test(scan_finds_us),
	};

	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
