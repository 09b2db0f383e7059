/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * epolls [-w] COUNT: a thread called waiter waits COUNT times in epoll_wait for a pipe, into which
 * one called feeder writes as soon as the waiter sleeps. Then it waits three times for 1 ms.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "asleep.h"
#include "go.h"

static atomic_int waiter_tid, waits;
static int ends[2], poller;
static long count;

static void *wait_for_events(void *arg)
{
	struct epoll_event events[4];
	char byte;

	(void)arg;
	prctl(PR_SET_NAME, "waiter");
	waiter_tid = (int)syscall(SYS_gettid);
	for (waits = 1; waits <= count; waits++) {
		if (epoll_wait(poller, events, 4, -1) != 1 || read(ends[0], &byte, 1) != 1)
			exit(1);
	}
	for (int i = 0; i < 3; i++)
		epoll_wait(poller, events, 4, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct workload w = workload_args(argc, argv);
	pthread_t thread;

	count = w.count;
	prctl(PR_SET_NAME, "feeder");
	workload_wait(&w);
	poller = epoll_create1(0);
	if (pipe(ends) || epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &event) ||
	    pthread_create(&thread, NULL, wait_for_events, NULL))
		return 1;
	for (int i = 1; i <= count; i++) {
		/* it sleeps only in epoll_wait */
		while (waits < i || !is_asleep(waiter_tid))
			sched_yield();
		if (write(ends[1], "", 1) != 1)
			return 1;
	}
	pthread_join(thread, NULL);
	return 0;
}
