/* SPDX-License-Identifier: GPL-2.0-only */
/* A script that goes on after Ctrl-C gets the CPU first, but not what it starts. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <cmocka.h>
#include "process/watchdog.h"

static volatile int interrupted;

static void interrupt(void)
{
	interrupted = 1;
}

static void give_up(int signal, uintptr_t code)
{
	(void)signal;
	(void)code;
	_exit(1);
}

static int niceness(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static void starts_others_as_usual(void **state)
{
	const struct watchdog_ops ops = {interrupt, give_up,
					 (const void *)(uintptr_t)starts_others_as_usual};
	const struct sched_param normal = {0};
	int before = niceness(), status = -1;
	pid_t child;

	(void)state;
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &normal), 0); /* tests are idle tasks */
	watchdog_init(&ops);
	watchdog_begin(0);
	watchdog_start();
	errno = 0;
	while (!interrupted)
		;
	assert_int_equal(errno, 0); /* without root, the kernel refuses the priority */
	assert_int_equal(niceness(), geteuid() ? before : -20);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(niceness() < 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	watchdog_end();
	assert_int_equal(niceness(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_others_as_usual),
	};

	return cmocka_run_group_tests_name("watchdog", tests, NULL, NULL);
}
