/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pingpong [-w] [-c CPU[,CPU]] COUNT [RATE]: two threads called ping and pong, pinned to the CPUs
 * (one: both to it), wake each other exactly COUNT times each way; the main thread, ping, starts.
 * Each waits until the other is off its CPU before it wakes it: waking a task that is still going
 * to sleep is not an event. So a round is exactly two sched:sched_waking, and on one CPU two
 * sched:sched_wakeup (some kernels wake an idle CPU's task untraced).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "go.h"

struct player {
	int futex; /* never changes: only its wait queue is used */
	int wchan; /* /proc/self/task/TID/wchan: "0" while the task is not blocked */
};

static struct workload work;
static struct player ping, pong;

static void become(struct player *me, const char *name, int cpu)
{
	char path[64];
	cpu_set_t set;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/wchan", syscall(SYS_gettid));
	me->wchan = open(path, O_RDONLY);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= 0 && sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		exit(1);
	}
	prctl(PR_SET_NAME, name); /* last, because moving to the CPU may be a wakeup too */
}

static int is_blocked(const struct player *p)
{
	char c;

	return pread(p->wchan, &c, 1, 0) == 1 && c != '0';
}

static void sleep_as(struct player *me)
{
	while (syscall(SYS_futex, &me->futex, FUTEX_WAIT_PRIVATE, 0, NULL))
		;
}

static void wake(struct player *other)
{
	/* Bounded, because not every kernel shows where a task is blocked. */
	for (int i = 0; i < 10000 && !is_blocked(other); i++)
		sched_yield();
	while (syscall(SYS_futex, &other->futex, FUTEX_WAKE_PRIVATE, 1) != 1)
		sched_yield();
}

static void *play_pong(void *arg)
{
	(void)arg;
	become(&pong, "pong", work.cpus[1]);
	for (long i = 0; i < work.count; i++) {
		sleep_as(&pong);
		wake(&ping);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec start;
	pthread_t thread;

	work = workload_args(argc, argv);
	if (pthread_create(&thread, NULL, play_pong, NULL)) {
		perror("pthread_create");
		return 1;
	}
	workload_wait(&work);
	become(&ping, "ping", work.cpus[0]);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < work.count; i++) {
		workload_pace(&work, &start, i);
		wake(&pong);
		sleep_as(&ping);
	}
	_exit(0); /* a join could be one more wakeup */
}
